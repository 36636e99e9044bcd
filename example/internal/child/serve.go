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

package child

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// answerPrefix marks an answer among whatever else a child prints.
const answerPrefix = "@answer "

// Answers is where the child's answers go. dubbo-go logs to standard output; that
// goes to standard error from here on.
func Answers() io.Writer {
	answers := os.Stdout
	os.Stdout = os.Stderr
	return answers
}

// Serve answers commands from in on out until in ends. A child ends with its
// driver that way, even if the driver was killed.
func Serve(in io.Reader, out io.Writer, handle func(command string, args []string) (any, error)) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		answer, err := handle(words[0], words[1:])
		if err != nil {
			return fmt.Errorf("command %q: %w", lines.Text(), err)
		}
		data, err := json.Marshal(answer)
		if err != nil {
			return fmt.Errorf("command %q: %w", lines.Text(), err)
		}
		if _, err := fmt.Fprintf(out, "%s%s\n", answerPrefix, data); err != nil {
			return err
		}
	}
	return lines.Err()
}
