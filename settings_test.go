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

package weir

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
)

const limit7 = "weir: {provider: {executes: 7}}\n"

func newSources(t *testing.T, custom any) *sources {
	t.Helper()
	for _, name := range []string{EnvConfigPath, EnvMode, "DUBBO_GO_CONFIG_PATH"} {
		t.Setenv(name, "")
	}
	t.Chdir(t.TempDir())
	s := &sources{runtime: guard.NewRuntime(), customConfig: func() any { return custom }}
	t.Cleanup(s.stop)
	return s
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (s *sources) executes() (int, string) {
	e := s.runtime.Store.View().Resolve(conf.Provider, conf.ServiceKey{Interface: "a.Service"}, "m", nil)
	for _, setting := range e.Settings {
		if setting.Key == "executes" {
			return e.Executes.Limit, setting.Source
		}
	}
	return 0, ""
}

func TestWhereTheSectionIsReadFrom(t *testing.T) {
	t.Run("nowhere", func(t *testing.T) {
		s := newSources(t, nil)
		require.NoError(t, s.load())
		limit, _ := s.executes()
		require.Zero(t, limit)
	})
	t.Run("dubbo's file", func(t *testing.T) {
		s := newSources(t, nil)
		path := write(t, "dubbogo.yaml", "dubbo: {application: {name: a}}\n"+limit7)
		t.Setenv("DUBBO_GO_CONFIG_PATH", path)
		require.NoError(t, s.load())
		limit, source := s.executes()
		require.Equal(t, 7, limit)
		require.Equal(t, "file "+path, source)
	})
	t.Run("dubbo's default file", func(t *testing.T) {
		s := newSources(t, nil)
		require.NoError(t, os.MkdirAll("conf", 0o700))
		require.NoError(t, os.MkdirAll("bin", 0o700))
		require.NoError(t, os.WriteFile("conf/dubbogo.yaml", []byte(limit7), 0o600))
		t.Chdir("bin")
		require.NoError(t, s.load())
		limit, _ := s.executes()
		require.Equal(t, 7, limit)
	})
	t.Run("its own file before dubbo's", func(t *testing.T) {
		s := newSources(t, nil)
		t.Setenv("DUBBO_GO_CONFIG_PATH", write(t, "dubbogo.yaml", limit7))
		t.Setenv(EnvConfigPath, write(t, "weir.yaml", "weir: {provider: {executes: 8}}"))
		require.NoError(t, s.load())
		limit, _ := s.executes()
		require.Equal(t, 8, limit)
	})
	t.Run("Load before all", func(t *testing.T) {
		s := newSources(t, nil)
		t.Setenv(EnvConfigPath, write(t, "weir.yaml", "weir: {provider: {executes: 8}}"))
		require.NoError(t, s.use(write(t, "mine.yaml", "weir: {provider: {executes: 9}}")))
		require.NoError(t, s.load())
		limit, _ := s.executes()
		require.Equal(t, 9, limit)
	})
	t.Run("dubbo's config-map", func(t *testing.T) {
		s := newSources(t, map[string]any{"provider": map[string]any{
			"executes": 5, "services": map[string]any{"a.Service": map[string]any{"methods": map[string]any{"m": map[string]any{"executes": "6"}}}},
		}})
		require.NoError(t, s.load())
		limit, source := s.executes()
		require.Equal(t, 6, limit)
		require.Equal(t, sectionName, source)
	})
}

func TestTwoPlacesMustNotSetTheSameKey(t *testing.T) {
	s := newSources(t, map[string]any{"provider": map[string]any{"executes": 5}})
	t.Setenv(EnvConfigPath, write(t, "weir.yaml", limit7))
	err := s.load()
	require.ErrorContains(t, err, "key=executes")
	require.ErrorContains(t, err, "sets the same key")

	s = newSources(t, map[string]any{"consumer": map[string]any{"retry-refused": 0}})
	t.Setenv(EnvConfigPath, write(t, "weir.yaml", limit7))
	require.NoError(t, s.load())
}

func TestFaultsInTheSources(t *testing.T) {
	for name, tt := range map[string]struct{ text, says string }{
		"an unknown key":  {"weir: {provider: {excutes: 7}}", "did you mean executes?"},
		"no section":      {"dubbo: {}", "there is no weir: section"},
		"an empty file":   {" \n", "the file is empty"},
		"not YAML at all": {"weir: [", "a YAML document"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSources(t, nil)
			path := write(t, "weir.yaml", tt.text)
			t.Setenv(EnvConfigPath, path)
			err := s.load()
			var e *conf.Error
			require.ErrorAs(t, err, &e)
			require.ErrorContains(t, err, tt.says)
			require.ErrorContains(t, err, path)
		})
	}
	t.Run("a file that is not there", func(t *testing.T) {
		s := newSources(t, nil)
		t.Setenv(EnvConfigPath, "gone.yaml")
		require.ErrorContains(t, s.load(), "gone.yaml")
		require.Error(t, s.use("gone.yaml"))
	})
	t.Run("a section in dubbo's map", func(t *testing.T) {
		require.ErrorContains(t, newSources(t, []any{1}).load(), sectionName)
		require.ErrorContains(t, newSources(t, map[string]any{"provider": map[string]any{"executes": 1.5}}).load(), `value="1.5"`)
	})
	t.Run("a limit where dubbo drops it", func(t *testing.T) {
		s := newSources(t, nil)
		t.Setenv("DUBBO_GO_CONFIG_PATH", write(t, "dubbogo.yaml",
			"dubbo: {provider: {services: {A: {interface: a.B, executes: 5, params: {executes: 7}}}}}\n"))
		err := s.load()
		require.ErrorContains(t, err, "service=a.B key=executes value=\"5\": dubbo drops this key here")
		var e *conf.Error
		require.ErrorAs(t, err, &e)
		require.Len(t, e.Faults, 1)
	})
	t.Run("the mode of the environment", func(t *testing.T) {
		s := newSources(t, nil)
		t.Setenv(EnvMode, "on")
		require.ErrorContains(t, s.load(), "enforce, observe or off")
	})
	t.Run("what is right holds with on-error: warn", func(t *testing.T) {
		s := newSources(t, nil)
		t.Setenv(EnvConfigPath, write(t, "weir.yaml", "weir: {on-error: warn, provider: {executes: 7, stats: maybe}}"))
		require.Error(t, s.load())
		require.Equal(t, conf.Warn, s.runtime.Store.View().OnError())
		limit, _ := s.executes()
		require.Equal(t, 7, limit)
	})
}

func TestModePrecedence(t *testing.T) {
	s := newSources(t, nil)
	t.Setenv(EnvConfigPath, write(t, "weir.yaml", "weir: {mode: off}"))
	t.Setenv(EnvMode, "observe")
	require.NoError(t, s.load())
	mode, source := s.runtime.Store.View().Mode()
	require.Equal(t, conf.Observe, mode)
	require.Equal(t, EnvMode, source)
	s.runtime.Store.Set(conf.FromCode, "code", &conf.Config{Mode: conf.Enforce})
	mode, _ = s.runtime.Store.View().Mode()
	require.Equal(t, conf.Enforce, mode)
}

func TestTheFileIsPolled(t *testing.T) {
	s := newSources(t, nil)
	path := write(t, "weir.yaml", limit7)
	t.Setenv(EnvConfigPath, path)
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, s.load())
		polls := func(n int) {
			time.Sleep(time.Duration(n) * PollInterval) //nolint:forbidigo // synctest
			synctest.Wait()
		}
		require.NoError(t, os.WriteFile(path, []byte("weir: {provider: {executes: 9}}"), 0o600))
		polls(1)
		limit, _ := s.executes()
		require.Equal(t, 7, limit, "a change seen once may be half a file")
		polls(1)
		limit, _ = s.executes()
		require.Equal(t, 9, limit)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		polls(3)
		limit, _ = s.executes()
		require.Equal(t, 9, limit, "an emptied file takes nothing back")
		require.EqualValues(t, 1, s.runtime.ConfigErrors())

		other := filepath.Join(filepath.Dir(path), "other.yaml")
		require.NoError(t, os.WriteFile(other, []byte("weir: {provider: {executes: 3}}"), 0o600))
		require.NoError(t, s.use(other))
		require.NoError(t, os.WriteFile(path, []byte(limit7), 0o600))
		polls(3)
		limit, _ = s.executes()
		require.Equal(t, 3, limit, "the file before is not looked at any more")
		require.NoError(t, os.WriteFile(other, []byte("weir: {provider: {executes: 4}}"), 0o600))
		polls(2)
		limit, _ = s.executes()
		require.Equal(t, 4, limit)
		s.stop()
		synctest.Wait()
	})
}
