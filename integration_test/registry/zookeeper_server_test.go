// Copyright The Weir Authors.
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

//go:build services

package registry

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dubbogo/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/integration_test/harness"
)

// zkServer is a ZooKeeper of a test's own, which it may stop, and start with its data kept.
type zkServer struct {
	t       *testing.T
	address string
	config  string
	cmd     *exec.Cmd
}

func newZKServer(t *testing.T) *zkServer {
	t.Helper()
	dir, port := t.TempDir(), harness.FreePort()
	s := &zkServer{t: t, address: fmt.Sprint("127.0.0.1:", port), config: filepath.Join(dir, "zoo.cfg")}
	require.NoError(t, os.WriteFile(s.config, fmt.Appendf(nil, `dataDir=%s
clientPortAddress=127.0.0.1
clientPort=%d
tickTime=500
maxClientCnxns=0
admin.enableServer=false
forceSync=no
4lw.commands.whitelist=srvr,cons
`, dir, port), 0o600))
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *zkServer) start() {
	s.t.Helper()
	classpath := os.Getenv("WEIR_TEST_ZOOKEEPER_CLASSPATH")
	require.NotEmpty(s.t, classpath, "WEIR_TEST_ZOOKEEPER_CLASSPATH names no server, see .ci/services.sh")
	s.cmd = exec.Command("nice", "-n", "-10", "java", "-Xmx128m", // as in .ci/services.sh
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classpath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", s.config)
	s.cmd.Stderr = os.Stderr
	require.NoError(s.t, s.cmd.Start())
	harness.Eventually(s.t, "the ZooKeeper answers", func() bool { return strings.Contains(s.word("srvr"), "Mode: standalone") })
}

// stop ends it as a crash does.
func (s *zkServer) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// word asks one of ZooKeeper's four-letter words; "" is no answer.
func (s *zkServer) word(word string) string {
	conn, err := net.DialTimeout("tcp", s.address, time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, word)
	text, _ := io.ReadAll(conn)
	return string(text)
}

var sid = regexp.MustCompile(`sid=0x([0-9a-f]+)`)

// sessions are those that have a connection.
func (s *zkServer) sessions() map[int64]bool {
	out := map[int64]bool{}
	for _, m := range sid.FindAllStringSubmatch(s.word("cons"), -1) {
		id, err := strconv.ParseUint(m[1], 16, 64)
		require.NoError(s.t, err)
		out[int64(id)] = true
	}
	return out
}

// expire ends a session as the server does when it hears nothing of it for too long: what is
// ephemeral goes, and the client is told once it connects anew. It takes the session over, for
// which it needs the password that ZooKeeper derives from the session's number, and closes it.
func (s *zkServer) expire(session int64) {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.address)
	require.NoError(s.t, err)
	defer conn.Close()
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(harness.Patience)))
	in := bufio.NewReader(conn)
	// A connect request: protocol version, last transaction seen, timeout, session, password.
	request := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, 0), 0)
	request = binary.BigEndian.AppendUint32(request, 10_000)
	request = binary.BigEndian.AppendUint64(request, uint64(session))
	request = append(binary.BigEndian.AppendUint32(request, 16), passwordOf(session)...)
	send := func(body []byte) {
		_, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
		require.NoError(s.t, err)
	}
	read := func() []byte {
		var size uint32
		require.NoError(s.t, binary.Read(in, binary.BigEndian, &size))
		body := make([]byte, size)
		_, err := io.ReadFull(in, body)
		require.NoError(s.t, err)
		return body
	}
	send(request)
	require.Equal(s.t, uint64(session), binary.BigEndian.Uint64(read()[8:]), "the session is taken over")
	send(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 1), 0xFFFFFFF5)) // -11 closes it
	read()
}

// passwordOf is what java.util.Random makes of the session's number and a constant of ZooKeeper's.
func passwordOf(session int64) []byte {
	const mask, factor = 1<<48 - 1, 0x5DEECE66D
	seed := (uint64(session^0xB3415C00) ^ factor) & mask
	var out []byte
	for range 4 {
		seed = (seed*factor + 0xB) & mask
		out = binary.LittleEndian.AppendUint32(out, uint32(seed>>16))
	}
	return out
}

// owner is the session of whoever has made the node.
func (p *byPath) owner(path string) int64 {
	p.t.Helper()
	var stat *zk.Stat
	harness.Eventually(p.t, "the node is there", func() (there bool) {
		there, s, err := p.conn.Exists(path)
		stat = s
		return there && err == nil
	})
	return stat.EphemeralOwner
}
