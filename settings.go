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
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dubbo.apache.org/dubbo-go/v3"
	"dubbo.apache.org/dubbo-go/v3/common/constant"
	"dubbo.apache.org/dubbo-go/v3/common/extension"
	"github.com/dubbogo/gost/log/logger"
	"gopkg.in/yaml.v3"

	"github.com/weir-go/weir/conf"
	"github.com/weir-go/weir/filter/guard"
	"github.com/weir-go/weir/internal/transport"
)

// Environment variables.
const (
	// EnvConfigPath names a YAML file with a weir section.
	EnvConfigPath = "WEIR_CONFIG_PATH"
	// EnvMode is the mode that holds for all guards: over files, under code.
	EnvMode = "WEIR_MODE"
)

// PollInterval is how often the file is read again. A change holds once two
// readings in a row agree on it.
const PollInterval = 5 * time.Second

// settleAfter is when services that are configured but not there are worth a
// warning.
const settleAfter = 30 * time.Second

// dubboDefaultPath is where dubbo.Load looks without being told.
const dubboDefaultPath = "../conf/dubbogo.yaml"

var settings = &sources{runtime: guard.Process(), customConfig: customConfigMap}

// sources reads what is configured outside of code, once before the first URL
// is looked at, and then polls the file.
type sources struct {
	runtime      *guard.Runtime
	customConfig func() any

	// settled is called once, settleAfter the first export or refer: by then a
	// program has made most of its services and references.
	settled func()
	// begin is called once, before the first export or refer, and what it returns at the end.
	begin func() (end func())

	once sync.Once

	mu       sync.Mutex
	faults   []conf.Fault // guarded by mu: of all sources but the file
	fileErr  error        // guarded by mu: of the file
	section  *conf.Config // guarded by mu: what dubbo's config-map says
	file     *conf.File   // guarded by mu: the one in use
	current  conf.Set     // guarded by mu: what it said
	prepared bool         // guarded by mu
	stopPoll func()       // guarded by mu
	end      func()       // guarded by mu: of what has begun

	registries *madeRegistries // guarded by mu: nil until some were made
}

// prepare is called before each URL is looked at.
func (s *sources) prepare() error {
	s.once.Do(func() {
		// Before the first transport is made: dubbo's table of codecs is a plain map.
		transport.InstallDubboCodec(guard.DubboException)
		_ = s.load()
		if s.settled != nil {
			time.AfterFunc(settleAfter, func() {
				defer func() { _ = recover() }() // a logger that panics here would end the process
				s.settled()
			})
		}
		if s.begin != nil {
			end := s.begin()
			s.mu.Lock()
			s.end = end
			s.mu.Unlock()
		}
		extension.AddCustomShutdownCallback(s.stop)
	})
	return s.wrong()
}

// wrong are the faults that no later Load has mended.
func (s *sources) wrong() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := slices.Clone(s.faults)
	if s.fileErr != nil {
		faults = append(faults, faultsOf(s.fileErr)...)
	}
	return conf.AsError(append(faults, s.unmadeLocked()...))
}

// load reads all sources. Faults are returned together; with on-error: warn
// what is right is in force all the same.
func (s *sources) load() error {
	s.loadLocking()
	return s.wrong()
}

func (s *sources) loadLocking() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepared = true
	s.section, s.faults = s.readSection()
	if s.section != nil {
		s.runtime.Store.Set(conf.FromSection, sectionName, s.section)
	}
	set, err := s.loadFileLocked()
	if s.fileErr = err; err == nil {
		s.fileErr = s.conflictsLocked(set)
	}
	if text := os.Getenv(EnvMode); text != "" {
		switch mode := conf.Mode(text); mode {
		case conf.Enforce, conf.Observe, conf.Off:
			s.runtime.Store.SetEnvMode(mode)
		default:
			s.faults = append(s.faults, conf.Fault{Source: "environment", Key: EnvMode, Value: text, Allowed: "enforce, observe or off"})
		}
	}
	s.pollLocked()
}

// conflictsLocked are the keys that the file and dubbo's config-map both set.
func (s *sources) conflictsLocked(set conf.Set) error {
	if set.Config == nil || s.section == nil {
		return nil
	}
	return conf.AsError(conf.Conflicts(sectionName, s.section, s.file.Name(), set.Config))
}

// loadFileLocked finds and reads the file, unless Load has done so.
func (s *sources) loadFileLocked() (conf.Set, error) {
	if s.file != nil {
		return s.current, nil
	}
	s.file = findFile()
	if s.file == nil {
		return conf.Set{}, nil
	}
	set, err := s.readFileLocked()
	s.current = set
	return set, err
}

func (s *sources) readFileLocked() (conf.Set, error) {
	set, err := s.file.Read(context.Background())
	if set.Config != nil {
		s.runtime.Store.Set(conf.FromFile, s.file.Name(), set.Config)
		logger.Infof("[Weir][Config] %s is in force", s.file.Path)
	}
	return set, err
}

// findFile is the file that environment and habit name, nil for none.
func findFile() *conf.File {
	if path := os.Getenv(EnvConfigPath); path != "" {
		return &conf.File{Path: path, Required: true}
	}
	path := os.Getenv(constant.ConfigFileEnvKey)
	if path == "" {
		path = dubboDefaultPath
	}
	if _, err := os.Stat(path); err != nil {
		// dubbo itself complains about a file that it was told to read; a
		// program that builds its configuration in code reads none.
		return nil
	}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".yaml", ".yml", ".json":
		return &conf.File{Path: path}
	default:
		logger.Warnf("[Weir][Config] a weir section in %s is not read: only YAML and JSON are; name a YAML file in %s", path, EnvConfigPath)
		return nil
	}
}

const sectionName = "dubbo.custom.config-map.weir"

// readSection reads the section out of dubbo's own configuration, which works
// without knowing any path.
func (s *sources) readSection() (*conf.Config, []conf.Fault) {
	value := s.customConfig()
	if value == nil {
		return nil, nil
	}
	return parseSection(value)
}

func parseSection(value any) (*conf.Config, []conf.Fault) {
	text, err := yaml.Marshal(map[string]any{conf.RootKey: value})
	if err != nil {
		return nil, []conf.Fault{{Source: sectionName, Problem: err.Error(), Allowed: "a map"}}
	}
	cfg, _, faults := conf.ParseYAML(sectionName, text)
	return cfg, faults
}

func customConfigMap() any {
	custom := dubbo.GetCustomConfigSnapshot()
	if custom == nil {
		return nil
	}
	return custom.ConfigMap[conf.RootKey]
}

// use makes path the file.
func (s *sources) use(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := &conf.File{Path: path, Required: true}
	set, err := file.Read(context.Background())
	if err != nil {
		return err
	}
	former := s.file
	s.file = file
	if err := s.conflictsLocked(set); err != nil {
		s.file = former
		return err
	}
	s.current, s.fileErr = set, nil
	s.runtime.Store.Set(conf.FromFile, file.Name(), set.Config)
	if s.prepared {
		s.pollLocked()
	}
	return nil
}

// pollLocked starts polling the file in use, in place of the one before.
func (s *sources) pollLocked() {
	if s.stopPoll != nil {
		s.stopPoll()
	}
	if s.file == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stopPoll = cancel
	file, version := *s.file, s.current.Version
	go func() {
		conf.Watch(ctx, file, PollInterval, version, func(set conf.Set) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if ctx.Err() != nil {
				return // another file is in use by now
			}
			if err := s.conflictsLocked(set); err != nil {
				s.runtime.ConfigError(fmt.Errorf("the last good settings stay in force: %w", err))
				return
			}
			s.current, s.fileErr = set, nil
			s.runtime.Store.Set(conf.FromFile, file.Name(), set.Config)
			logger.Infof("[Weir][Config] %s has changed and is in force, version=%d", file.Path, s.runtime.Store.Version())
		}, func(err error) {
			s.runtime.ConfigError(fmt.Errorf("the last good settings stay in force: %w", err))
		})
	}()
}

func (s *sources) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopPoll != nil {
		s.stopPoll()
	}
	if s.end != nil {
		s.end()
	}
}

func faultsOf(err error) []conf.Fault {
	var e *conf.Error
	if errors.As(err, &e) {
		return e.Faults
	}
	return []conf.Fault{{Source: "file", Problem: strings.TrimPrefix(err.Error(), "weir: "), Allowed: "a file that can be read"}}
}
