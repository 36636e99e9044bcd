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

package balance

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dubbo.apache.org/dubbo-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/integration_test/greet"
	"github.com/weir-go/weir/integration_test/harness"
	"github.com/weir-go/weir/loadbalance"
)

// documentRole is a consumer in a process of its own that is started by a document.
const documentRole = "consumer-by-document"

type documentArgs struct {
	File string // the document
	// Calls are how many of each method to make, one after another.
	Calls int
}

type documentReport struct {
	Err          string // of loading
	Failed       int
	First        string // error of a call
	Balances     []weir.BalanceState
	ConfigErrors int64
}

// runDocument loads the document and calls.
func runDocument(child *harness.Child) error {
	var args documentArgs
	if err := child.Recv(&args); err != nil {
		return err
	}
	var c greet.GreetServiceImpl
	dubbo.SetConsumerServiceWithInfo(&c, &greet.GreetService_ClientInfo)
	if err := load(args.File); err != nil {
		return child.Send(documentReport{Err: err.Error()})
	}
	var report documentReport
	for range args.Calls {
		_, err := c.SayHello(background, &greet.HelloRequest{Name: "x"})
		_, err2 := c.Echo(background, &greet.EchoRequest{Text: "x"})
		if err = errors.Join(err, err2); err != nil {
			report.Failed++
			report.First = cmp.Or(report.First, err.Error())
		}
	}
	state := weir.Snapshot()
	report.Balances, report.ConfigErrors = state.Balances, state.ConfigErrors
	return child.Send(report)
}

// load is dubbo.Load; a panic is returned as an error.
func load(file string) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return dubbo.Load(dubbo.WithPath(file))
}

// byDocument runs a consumer of the pair whose reference has these lines, beside a weir section.
func (p *pair) byDocument(calls int, section string, lines ...string) documentReport {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "dubbogo.yaml")
	require.NoError(p.t, os.WriteFile(file, fmt.Appendf(nil, `
dubbo:
  application: {name: balance}
  consumer:
    request-timeout: 60s
    references:
      GreetServiceImpl:
        interface: %s
        protocol: tri
        group: %s
        url: %q
        %s
weir: %s
`, greet.GreetServiceName, p.group, p.first.URL()+";"+p.second.URL(), strings.Join(lines, "\n        "), section), 0o600))
	p.t.Setenv("WEIR_CONFIG_PATH", file)
	child := harness.Start(p.t, documentRole, documentArgs{File: file, Calls: calls})
	var report documentReport
	child.Recv(&report)
	return report
}

// ofSayHello is a load balance of that method.
func ofSayHello(balance string) string {
	return "params: {methods.SayHello.loadbalance: " + balance + "}"
}

func TestALoadBalanceInADocument(t *testing.T) {
	const calls = 50
	for name, tt := range map[string]struct {
		lines []string
		names []string // of those that chose
	}{
		"for all":              {[]string{"loadbalance: weir-shortestresponse"}, []string{loadbalance.ShortestResponse}},
		"for a method":         {[]string{ofSayHello("weir-p2c")}, []string{loadbalance.FewChoices}},
		"for all but a method": {[]string{"loadbalance: weir-leastactive", ofSayHello("random")}, []string{loadbalance.LeastActive}},
		"one each":             {[]string{"loadbalance: weir-leastactive", ofSayHello("weir-p2c")}, []string{loadbalance.LeastActive, loadbalance.FewChoices}},
		// dubbo-go 3.3.2 reads this list and drops it (ReferenceConfig.GetOptions).
		"in the list of methods": {[]string{"methods: [{name: SayHello, loadbalance: weir-p2c}]"}, nil},
		"none":                   {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, harness.Triple, nil)
			report := p.byDocument(calls, "{}", tt.lines...)
			require.Empty(t, report.Err)
			require.Zero(t, report.Failed, report.First)
			require.Zero(t, report.ConfigErrors)
			first, second := p.total()
			require.Equal(t, calls, first+second)
			require.Equal(t, calls, p.first.Stats("Echo").Total+p.second.Stats("Echo").Total)
			if tt.names == nil {
				require.Empty(t, report.Balances)
				return
			}
			require.Len(t, report.Balances, 1)
			require.Equal(t, tt.names, report.Balances[0].Balancers)
			require.Len(t, report.Balances[0].Providers, 2)
			for _, provider := range report.Balances[0].Providers {
				require.Zero(t, provider.Inflight)
				require.Positive(t, provider.Picks)
			}
		})
	}
}

// dubbo would look for it at the call, and panic there.
func TestAnUnknownLoadBalanceInADocument(t *testing.T) {
	for name, tt := range map[string]struct{ line, says string }{
		"of the reference": {"loadbalance: weir-leastactiv", `key=loadbalance value="weir-leastactiv"`},
		"of a method":      {ofSayHello("weir-p3c"), `method=SayHello key=loadbalance value="weir-p3c"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, harness.Triple, nil)
			report := p.byDocument(1, "{}", tt.line)
			require.Contains(t, report.Err, tt.says)
			require.Contains(t, report.Err, "allowed: leastactive, random, roundrobin, weir-leastactive, weir-p2c, weir-shortestresponse;")

			report = p.byDocument(20, "{on-error: warn}", tt.line)
			require.Empty(t, report.Err)
			require.Zero(t, report.Failed, report.First)
			require.EqualValues(t, 1, report.ConfigErrors)
			require.Empty(t, report.Balances, "dubbo's chose")
			first, second := p.total()
			require.Equal(t, 20, first+second)
		})
	}
}

// A reference that code makes is stopped, too.
func TestAnUnknownLoadBalanceOfAReference(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol string) {
		e := harness.Endpoint{Protocol: protocol, Addr: "127.0.0.1:1", Group: harness.NewGroup()}
		_, err := harness.TryDial(harness.ConsumerConfig{Providers: []harness.Endpoint{e}, Params: map[string]string{"methods.SayHello.loadbalance": "typo"}})
		var faults *conf.Error
		require.ErrorAs(t, err, &faults)
		require.ErrorContains(t, err, `value="typo": no load balance of that name is registered`)
	})
}
