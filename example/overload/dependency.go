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

package main

import "sync"

// dependency is what a method needs: A or B.
type dependency struct {
	mu    sync.Mutex
	hangs bool          // guarded by mu: whoever asks now gets no answer
	back  chan struct{} // guarded by mu: closed when those that got none are answered
}

// ask returns when the dependency has answered. It has no timeout, and heeds nobody who
// does not wait any more: that is what this sample is about.
func (d *dependency) ask() {
	d.mu.Lock()
	hangs, back := d.hangs, d.back
	d.mu.Unlock()
	if hangs {
		d.waitForever(back)
	}
}

// hang has all who ask from now on get no answer.
func (d *dependency) hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hangs = true
	if d.back == nil {
		d.back = make(chan struct{})
	}
}

// mend has all who ask from now on get an answer. Those that hang still do.
func (d *dependency) mend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hangs = false
}

// answer is mend, and those that hang are answered.
func (d *dependency) answer() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hangs = false
	if d.back != nil {
		close(d.back)
		d.back = nil
	}
}

// hangsIn is what a profile must name.
const hangsIn = "main.(*dependency).waitForever"

// waitForever is where calls hang.
//
//go:noinline
func (d *dependency) waitForever(back <-chan struct{}) { <-back }
