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

package dagor

import "math/bits"

// Odd constants without a pattern, those of splitmix64 and wyhash.
const (
	golden  = 0x9e3779b97f4a7c15
	folding = 0xa0761d6478bd642f
)

// hashEnd is how many bytes of each end of a long text count, a multiple of 8.
const hashEnd = 512

// hashText is a hash that is the same in every process and release: instances agree on
// levels without talking. It takes eight bytes at a time, as ids of traces are long and
// FNV-1a waits for a multiplication at each byte. Who may choose a text can choose its
// hash: it is no defence against somebody who makes up ids. Of a long text its length and its two
// ends count, as it may come from outside and be of megabytes.
func hashText(s string) uint64 {
	h := uint64(len(s)) * golden
	if len(s) < 8 {
		var last uint64
		for i := range len(s) {
			last = last<<8 | uint64(s[i])
		}
		return mix(fold(h ^ last))
	}
	rest := s
	if len(s) > 2*hashEnd {
		for rest = s[:hashEnd]; len(rest) > 0; rest = rest[8:] {
			h = fold(h^word(rest)) + golden
		}
		rest = s[len(s)-hashEnd:]
	}
	for ; len(rest) > 8; rest = rest[8:] {
		h = fold(h^word(rest)) + golden // what is folded to 0 must not stay there
	}
	return mix(fold(h ^ word(s[len(s)-8:]))) // some of its bytes twice
}

func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// fold has each bit of x change bits on both sides of it.
func fold(x uint64) uint64 {
	hi, lo := bits.Mul64(x, folding)
	return hi ^ lo
}

// mix is the end of splitmix64: a permutation in which each bit of x changes each bit of
// the result with a chance of one half.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
