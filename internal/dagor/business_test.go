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

package dagor_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/dagor"
)

func table(t testing.TB, levels map[dagor.Subject]int) *dagor.BusinessTable {
	t.Helper()
	b, err := dagor.NewBusinessTable(levels)
	require.NoError(t, err)
	return b
}

func TestBusinessLevels(t *testing.T) {
	b := table(t, map[dagor.Subject]int{
		{Service: "pay.Pay"}:                      10,
		{Service: "pay.Pay", Method: "Refund"}:    20,
		{Service: "pay.Pay", Method: "charge"}:    0,
		{Service: "chat.Chat", Method: "send"}:    30,
		{Service: "chat.Chat", Method: "änderN"}:  40,
		{Service: "chat.Chat", Method: "_under"}:  50,
		{Service: "chat.Chat", Method: "@at"}:     60,
		{Service: "chat.Chat", Method: "l"}:       70,
		{Action: "login"}:                         5,
		{Service: "login"}:                        255,
		{Service: "chat.Chat", Method: "Größe"}:   80,
		{Service: "chat.Chat", Method: "[square"}: 90,
	})
	for _, tt := range []struct {
		call  dagor.Subject
		level int // -1 for none
	}{
		{dagor.Subject{Service: "pay.Pay"}, 10},
		{dagor.Subject{Service: "pay.Pay", Method: "anything"}, 10},
		{dagor.Subject{Service: "pay.Pay", Method: "Refund"}, 20},
		{dagor.Subject{Service: "pay.Pay", Method: "refund"}, 20},
		{dagor.Subject{Service: "pay.Pay", Method: "reFund"}, 10},
		{dagor.Subject{Service: "pay.Pay", Method: "Charge"}, 0},
		{dagor.Subject{Service: "chat.Chat", Method: "Send"}, 30},
		{dagor.Subject{Service: "chat.Chat"}, -1},
		{dagor.Subject{Service: "chat.Chat", Method: "änderN"}, 40},
		{dagor.Subject{Service: "chat.Chat", Method: "_under"}, 50},
		{dagor.Subject{Service: "chat.Chat", Method: "@at"}, 60},
		{dagor.Subject{Service: "chat.Chat", Method: "`at"}, -1},
		{dagor.Subject{Service: "chat.Chat", Method: "L"}, 70},
		{dagor.Subject{Service: "chat.Chat", Method: "größe"}, 80},
		{dagor.Subject{Service: "chat.Chat", Method: "[square"}, 90},
		{dagor.Subject{Service: "chat.Chat", Method: "{square"}, -1},
		{dagor.Subject{Service: "Pay.Pay", Method: "refund"}, -1},
		{dagor.Subject{}, -1},
		{dagor.Subject{Action: "login"}, 5},
		{dagor.Subject{Action: "login", Service: "pay.Pay", Method: "charge"}, 5},
		{dagor.Subject{Action: "logout", Service: "pay.Pay", Method: "charge"}, 0},
		{dagor.Subject{Action: "Login"}, -1},
		{dagor.Subject{Action: "pay.Pay"}, -1},
		{dagor.Subject{Service: "login"}, 255},
	} {
		level, ok := b.Level(tt.call)
		if tt.level < 0 {
			assert.False(t, ok, "%v", tt.call)
			assert.EqualValues(t, 255, level, "%v", tt.call)
			continue
		}
		assert.True(t, ok, "%v", tt.call)
		assert.EqualValues(t, tt.level, level, "%v", tt.call)
	}
	for _, none := range []*dagor.BusinessTable{nil, {}, table(t, nil)} {
		level, ok := none.Level(dagor.Subject{Action: "login", Service: "pay.Pay", Method: "charge"})
		assert.False(t, ok)
		assert.EqualValues(t, 255, level)
	}
}

func TestWrongBusinessLevels(t *testing.T) {
	for _, tt := range []struct {
		levels map[dagor.Subject]int
		why    []string
	}{
		{map[dagor.Subject]int{{Service: "s"}: -1}, []string{`service "s": business level -1, want 0 to 255`}},
		{map[dagor.Subject]int{{Service: "s"}: 256}, []string{`business level 256, want 0 to 255`}},
		{map[dagor.Subject]int{{Action: "a"}: 256}, []string{`action "a": business level 256, want 0 to 255`}},
		{map[dagor.Subject]int{{}: 1}, []string{`service "": the name of the service is empty`}},
		{map[dagor.Subject]int{{Method: "m"}: 1}, []string{`method "m" of service "": the name of the service is empty`}},
		{map[dagor.Subject]int{{Action: "a", Service: "s"}: 1}, []string{`action "a": an action stands for itself`}},
		{map[dagor.Subject]int{{Action: "a", Method: "m"}: 1}, []string{`action "a": an action stands for itself`}},
		{map[dagor.Subject]int{{Service: "s", Method: "Do"}: 1, {Service: "s", Method: "do"}: 1}, []string{`of service "s": the method stands here twice`}},
		{map[dagor.Subject]int{{Service: "b"}: -1, {Service: "a"}: -1, {Service: "c"}: 3}, []string{"service \"a\": business level -1, want 0 to 255\nweir: labels: service \"b\""}},
	} {
		b, err := dagor.NewBusinessTable(tt.levels)
		assert.Nil(t, b)
		require.ErrorIs(t, err, dagor.ErrLabels)
		for _, why := range tt.why {
			require.ErrorContains(t, err, why)
		}
	}
}

// sameMethod is told slowly: by both spellings of an ASCII letter.
func sameMethod(a, b string) bool {
	upper := func(s string) string {
		if s != "" && 'a' <= s[0] && s[0] <= 'z' {
			return string(rune(s[0]-32)) + s[1:]
		}
		return s
	}
	return upper(a) == upper(b)
}

// naiveLevel looks through the entries one after another.
func naiveLevel(levels map[dagor.Subject]int, call dagor.Subject) (int, bool) {
	method, service := -1, -1
	for s, level := range levels {
		switch {
		case s.Action != "":
			if s.Action == call.Action {
				return level, true
			}
		case s.Service != call.Service:
		case s.Method == "":
			service = level
		case sameMethod(s.Method, call.Method):
			method = level
		}
	}
	switch {
	case method >= 0:
		return method, true
	case service >= 0:
		return service, true
	}
	return 255, false
}

// FuzzBusinessTable makes entries of three bytes and looks each of them up.
func FuzzBusinessTable(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 100, 200, 255})
	f.Add([]byte("aB1Ab2aA3"))
	names := []string{"", "a", "A", "b", "aB", "AB", "ab", "ä", "[", "{", "_x", "same"}
	f.Fuzz(func(t *testing.T, data []byte) {
		name := func(b byte) string { return names[int(b)%len(names)] }
		levels := map[dagor.Subject]int{}
		var calls []dagor.Subject
		good := true
		for ; len(data) >= 3; data = data[3:] {
			s := dagor.Subject{Service: name(data[0]), Method: name(data[1])}
			if data[0] >= 128 {
				s = dagor.Subject{Action: name(data[1])}
			}
			if data[2] == 255 {
				s.Action = name(data[0])
			}
			if _, there := levels[s]; there {
				continue
			}
			level := int(data[2])*2 - 100
			if level >= -50 && level <= 300 {
				level = min(max(level, 0), 255)
			}
			twice := false
			for other := range levels {
				twice = twice || other.Action == "" && s.Action == "" && other.Service == s.Service &&
					s.Method != "" && other.Method != "" && sameMethod(other.Method, s.Method)
			}
			good = good && !twice && level >= 0 && level <= 255 && (s.Action != "") == (s.Service == "" && s.Method == "") &&
				(s.Action != "" || s.Service != "")
			levels[s] = level
			calls = append(calls, s, dagor.Subject{Service: s.Service, Method: s.Method, Action: name(data[2])})
		}
		b, err := dagor.NewBusinessTable(levels)
		if good != (err == nil) {
			t.Fatalf("%v: %v", levels, err)
		}
		if err != nil {
			return
		}
		for _, c := range calls {
			level, ok := b.Level(c)
			want, known := naiveLevel(levels, c)
			if int(level) != want || ok != known {
				t.Fatalf("%v in %v: %d %v, want %d %v", c, levels, level, ok, want, known)
			}
		}
	})
}

func benchTable(tb testing.TB) *dagor.BusinessTable {
	levels := map[dagor.Subject]int{}
	for s := range 50 {
		for m := range 20 {
			levels[dagor.Subject{Service: fmt.Sprintf("com.example.shop.Service%02d", s), Method: fmt.Sprintf("method%02d", m)}] = s + m
		}
	}
	return table(tb, levels)
}
