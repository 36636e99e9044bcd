#!/usr/bin/env bash
# Real services (registries, databases, ...) for the tests behind the build tag `services`.
#
#   .ci/services.sh run COMMAND...   install and start all of them, run COMMAND, stop them
#   .ci/services.sh start | stop     the same by hand; `start` prints the variables to export
#   .ci/services.sh install          only install
#
# A service NAME on the list below has up to four functions:
#
#   NAME_install   put the program on the machine; apt_install does nothing for packages that are there
#   NAME_start     start it on a loopback port with `daemon NAME COMMAND...`, tell tests its address with
#                  `offer VARIABLE VALUE`
#   NAME_ready     exit 0 once it answers; asked until then, READY_SECONDS at most
#   NAME_stop      only where ending the process is not enough
#
# For example
#
#   redis_install() { apt_install redis-server; }
#   redis_start() {
#       daemon redis redis-server --bind 127.0.0.1 --port 16379 --save '' --dir "$STATE"
#       offer WEIR_TEST_REDIS 127.0.0.1:16379
#   }
#   redis_ready() { redis-cli -p 16379 ping | grep -q PONG; }
#
# A service that cannot be installed or does not answer fails the run; no test is skipped for its lack. A test
# reads its address from the variable and fails when that is empty.
set -euo pipefail
cd "$(dirname "$0")/.."

# The services, in the order of their start.
SERVICES=(zookeeper)

STATE=${TMPDIR:-/tmp}/weir-services-$(id -u)
READY_SECONDS=${READY_SECONDS:-60}

say() { echo "services: $*" >&2; }

defined() { declare -F "$1" >/dev/null; }

apt_updated=false

# apt_install PACKAGE... installs what is missing.
apt_install() {
    local package missing=() sudo=()
    if [[ $(id -u) != 0 ]]; then sudo=(sudo); fi
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    say "installing ${missing[*]}"
    if ! $apt_updated; then
        ${sudo[@]+"${sudo[@]}"} apt-get update -qq
        apt_updated=true
    fi
    ${sudo[@]+"${sudo[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" </dev/null
}

# daemon NAME COMMAND... runs COMMAND in the background, its output in a log, its process id in a file.
daemon() {
    local name=$1
    shift
    setsid "$@" >"$STATE/$name.log" 2>&1 </dev/null &
    echo $! >"$STATE/$name.pid"
}

# offer VARIABLE VALUE tells the tests something.
offer() {
    export "$1=$2"
    echo "export $1='$2'" >>"$STATE/env"
}

alive() { [[ -f $STATE/$1.pid ]] && kill -0 "$(cat "$STATE/$1.pid")" 2>/dev/null; }

# ZooKeeper. Debian's package `zookeeper` is this library, scripts, and the Java runtime of a desktop with all that
# this needs; the library and a runtime without a desktop do. What it stores does not outlive it.
zookeeper_install() { apt_install default-jre-headless libzookeeper-java; }
zookeeper_start() {
    rm -rf "$STATE/zookeeper"
    mkdir "$STATE/zookeeper"
    cat >"$STATE/zookeeper/zoo.cfg" <<EOF
dataDir=$STATE/zookeeper/data
clientPortAddress=127.0.0.1
clientPort=12181
tickTime=500
maxClientCnxns=0
admin.enableServer=false
forceSync=no
EOF
    local classpath=/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar
    # Before the tests, where the system lets it: sessions end when it does not answer for seconds, and they use
    # all processors. For the same reason it does not wait for the disk.
    daemon zookeeper nice -n -10 java -Xmx128m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
        -cp "$classpath" org.apache.zookeeper.server.quorum.QuorumPeerMain "$STATE/zookeeper/zoo.cfg"
    offer WEIR_TEST_ZOOKEEPER 127.0.0.1:12181
    # Some tests stop and start a server of their own.
    offer WEIR_TEST_ZOOKEEPER_CLASSPATH "$classpath"
}
# srvr is the one word of ZooKeeper's that it answers without being told to.
zookeeper_ready() { (exec 3<>/dev/tcp/127.0.0.1/12181 && echo srvr >&3 && grep -q 'Mode: standalone' <&3); }

install_one() {
    if defined "$1_install"; then "$1_install"; fi
}

start_one() {
    local name=$1 deadline=$((SECONDS + READY_SECONDS))
    say "starting $name"
    "${name}_start"
    until "${name}_ready" >/dev/null 2>&1; do
        if [[ -f $STATE/$name.pid ]] && ! alive "$name"; then
            tail -n 50 "$STATE/$name.log" >&2
            say "$name ended while starting"
            return 1
        fi
        if ((SECONDS >= deadline)); then
            tail -n 50 "$STATE/$name.log" >&2 || true
            say "$name does not answer after $READY_SECONDS s"
            return 1
        fi
        sleep 0.2
    done
}

stop_one() {
    local name=$1 pid
    if defined "${name}_stop"; then "${name}_stop" || true; fi
    if alive "$name"; then
        pid=$(cat "$STATE/$name.pid")
        say "stopping $name"
        kill -- "-$pid" 2>/dev/null || kill "$pid" 2>/dev/null || true
        for _ in {1..50}; do
            alive "$name" || break
            sleep 0.1
        done
        kill -9 -- "-$pid" 2>/dev/null || true
    fi
    rm -f "$STATE/$name.pid"
}

# each FUNCTION calls it for every service, in order; the first that fails ends the script.
each() {
    local name
    for name in ${SERVICES[@]+"${SERVICES[@]}"}; do "$1" "$name"; done
}

start_all() {
    mkdir -p "$STATE"
    each stop_one
    : >"$STATE/env"
    each start_one
}

stop_all() {
    local i
    for ((i = ${#SERVICES[@]} - 1; i >= 0; i--)); do stop_one "${SERVICES[i]}"; done
    rm -rf "$STATE"
}

case ${1:-} in
run)
    shift
    say "${#SERVICES[@]} on the list: ${SERVICES[*]:-none}"
    trap stop_all EXIT
    each install_one
    start_all
    "$@"
    ;;
install)
    each install_one
    ;;
start)
    each install_one
    start_all
    cat "$STATE/env"
    ;;
stop)
    stop_all
    ;;
*)
    sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
    ;;
esac
