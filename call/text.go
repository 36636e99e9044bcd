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

package call

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A refusal as text, where a protocol carries nothing else:
//
//	refusal = "weir: call refused:" 1*( SP field )
//	field   = key "=" value
//	key     = LOWER *( LOWER / DIGIT / "-" )
//	value   = 1*bare / quoted
//	bare    = ALPHA / DIGIT / "." / "_" / "-" / "/" / ":" / "#" / "*" / "$" / "+"
//	quoted  = a Go string literal in double quotes
//
// The whole text must match, from its first byte to its last, and be no longer
// than 4096 bytes. The fields guard, resource, reason, limit and observed must
// be there; retry-after, waited, max-wait (Go durations, not negative,
// microseconds written us) and forwarded (true or false) may be. No field comes twice. Fields that a
// reader does not know are skipped, so later versions can add some.

const (
	textPrefix = "weir: call refused:"
	// maxText bounds what Parse looks at: the text comes from the network.
	maxText = 4096

	fieldGuard      = "guard"
	fieldResource   = "resource"
	fieldReason     = "reason"
	fieldLimit      = "limit"
	fieldObserved   = "observed"
	fieldRetryAfter = "retry-after"
	fieldWaited     = "waited"
	fieldMaxWait    = "max-wait"
	fieldForwarded  = "forwarded"
)

// Field is one field of a refusal, its value written as the grammar asks.
type Field struct{ Key, Value string }

// Fields are the refusal's fields, for protocols that carry metadata.
func (e *RejectError) Fields() []Field {
	fields := []Field{
		{fieldGuard, quote(e.Guard)},
		{fieldResource, quote(e.Resource)},
		{fieldReason, quote(e.Reason)},
		{fieldLimit, strconv.FormatInt(e.Limit, 10)},
		{fieldObserved, strconv.FormatInt(e.Observed, 10)},
	}
	for _, f := range [...]struct {
		key   string
		value time.Duration
	}{{fieldRetryAfter, e.RetryAfter}, {fieldWaited, e.Waited}, {fieldMaxWait, e.MaxWait}} {
		if f.value > 0 {
			// Go writes microseconds with a letter that is no ASCII.
			fields = append(fields, Field{f.key, strings.Replace(f.value.String(), "µ", "u", 1)})
		}
	}
	if e.Forwarded {
		fields = append(fields, Field{fieldForwarded, "true"})
	}
	return fields
}

// FromFields reads a refusal back from what [RejectError.Fields] gave. get
// returns a field's value, or "" when it is not there. It is as strict as
// [Parse]: a value is one value and nothing after it.
func FromFields(get func(key string) string) (*RejectError, bool) {
	var e RejectError
	size := 0
	for i, key := range knownFields {
		text := get(key)
		if text == "" {
			if i < requiredFields {
				return nil, false
			}
			continue
		}
		if size += len(text); size > maxText || !utf8.ValidString(text) {
			return nil, false
		}
		value, rest, ok := cutValue(text)
		if !ok || rest != "" || !e.setField(key, value) {
			return nil, false
		}
	}
	return &e, true
}

// knownFields begin with the required ones.
var knownFields = [...]string{
	fieldGuard, fieldResource, fieldReason, fieldLimit, fieldObserved, fieldRetryAfter, fieldWaited, fieldMaxWait,
	fieldForwarded,
}

const requiredFields = 5

// quote keeps names that come from the network printable and on one line.
func quote(value string) string {
	if isBare(value) {
		return value
	}
	return strconv.QuoteToASCII(value)
}

func isBare(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if !isBareByte(s[i]) {
			return false
		}
	}
	return true
}

func isBareByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("._-/:#*$+", c) >= 0
}

// Parse reads a refusal from the text that [RejectError.Error] gives. It is
// strict: text that merely contains a refusal is not one.
func Parse(text string) (*RejectError, bool) {
	if len(text) > maxText || !utf8.ValidString(text) {
		return nil, false
	}
	rest, ok := strings.CutPrefix(text, textPrefix)
	if !ok {
		return nil, false
	}
	var (
		e    RejectError
		seen = make(map[string]struct{}, 8)
	)
	for rest != "" {
		var key, value string
		if key, value, rest, ok = cutField(rest); !ok {
			return nil, false
		}
		if _, dup := seen[key]; dup {
			return nil, false
		}
		seen[key] = struct{}{}
		if !e.setField(key, value) {
			return nil, false
		}
	}
	for _, key := range knownFields[:requiredFields] {
		if _, there := seen[key]; !there {
			return nil, false
		}
	}
	return &e, true
}

// cutField takes one " key=value" from the front of s.
func cutField(s string) (key, value, rest string, ok bool) {
	if s[0] != ' ' {
		return "", "", "", false
	}
	key, s, ok = strings.Cut(s[1:], "=")
	if !ok || !isKey(key) || s == "" {
		return "", "", "", false
	}
	value, rest, ok = cutValue(s)
	return key, value, rest, ok
}

// cutValue takes a value from the front of s, which is not empty.
func cutValue(s string) (value, rest string, ok bool) {
	if s[0] == '"' {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", false
		}
		value, err = strconv.Unquote(quoted)
		return value, s[len(quoted):], err == nil
	}
	end := 0
	for end < len(s) && isBareByte(s[end]) {
		end++
	}
	return s[:end], s[end:], end > 0
}

func isKey(s string) bool {
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || i > 0 && ('0' <= c && c <= '9' || c == '-') {
			continue
		}
		return false
	}
	return s != ""
}

func (e *RejectError) setField(key, value string) bool {
	var err error
	switch key {
	case fieldGuard:
		e.Guard = value
	case fieldResource:
		e.Resource = value
	case fieldReason:
		e.Reason = value
	case fieldLimit:
		e.Limit, err = strconv.ParseInt(value, 10, 64)
	case fieldObserved:
		e.Observed, err = strconv.ParseInt(value, 10, 64)
	case fieldRetryAfter:
		return setDuration(&e.RetryAfter, value)
	case fieldWaited:
		return setDuration(&e.Waited, value)
	case fieldMaxWait:
		return setDuration(&e.MaxWait, value)
	case fieldForwarded:
		e.Forwarded = value == "true"
		return value == "true" || value == "false"
	}
	return err == nil
}

func setDuration(d *time.Duration, value string) bool {
	var err error
	*d, err = time.ParseDuration(value)
	return err == nil && *d >= 0
}
