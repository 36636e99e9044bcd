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

package conf

import (
	"fmt"
	"strconv"
	"time"
)

// dubbo-go's keys of its filter tps.
const (
	tpsLimiter       = "tps.limiter"
	tpsLimitRate     = "tps.limit.rate"
	tpsLimitInterval = "tps.limit.interval"
	tpsLimitStrategy = "tps.limit.strategy"
	tpsLimitHandler  = "tps.limit.rejected.handler"
)

// algorithms are what dubbo-go's strategies are to Weir. The first is what holds
// where none is set.
var algorithms = map[string]Algorithm{
	"": AlgorithmFixed, "default": AlgorithmFixed, "fixedWindow": AlgorithmFixed, "threadSafeFixedWindow": AlgorithmFixed,
	"slidingWindow": AlgorithmSliding,
}

var (
	tpsBudget  = []string{tpsLimitRate, tpsLimitInterval, tpsLimitStrategy}
	ownBudget  = []string{TPSKey, TPSRateKey, TPSIntervalKey}
	ownInstead = "; or " + TPSKey + ", " + TPSIntervalKey + " and " + TPSAlgorithmKey + " below params:"

	allowedTPSLimiter  = "default or method-service; " + fmt.Sprintf(toKeep, ReplaceTPS)
	allowedTPSRate     = "a whole number from 1 to 2147483647" + ownInstead
	allowedTPSInterval = fmt.Sprintf("milliseconds from 1 to %d", maxInterval.Milliseconds()) + ownInstead
	allowedTPSStrategy = "slidingWindow, default, fixedWindow or threadSafeFixedWindow" + ownInstead
)

// tps makes dubbo-go's limits of calls per interval Weir's. A method with a rate or an
// interval has a budget of its own in both, and what it does not say is the service's.
func (t *translator) tps() {
	switch limiter := t.service.dubbo[tpsLimiter].value; limiter {
	case "":
		t.withoutLimiter()
		return
	case "default", "method-service":
	default:
		problem := "Weir's filter asks no limiter of others"
		if limiter == "polaris-limit" {
			problem = "Weir has no quota for all instances"
		}
		t.fault(t.service, tpsLimiter, problem, allowedTPSLimiter)
		return
	}
	limited := t.budget(t.service)
	t.each(func(m *place) {
		if m.has(tpsLimitRate) || m.has(tpsLimitInterval) {
			limited = t.budget(m) || limited
		} else if m.has(tpsLimitStrategy) {
			t.warn("%s has no effect: the method has no budget of its own", m.said(tpsLimitStrategy))
		}
		for _, flat := range []string{tpsLimiter, tpsLimitHandler} {
			if said := m.said(flat); said != "" {
				t.warn("%s has no effect: dubbo-go asks for the service's alone", said)
			}
		}
	})
	if limited {
		t.handler(t.service, tpsLimitHandler)
	}
}

// withoutLimiter tells of settings that dubbo-go ignores.
func (t *translator) withoutLimiter() {
	idle := func(p *place) {
		if said := p.said(tpsBudget...); said != "" {
			t.warn("%s has no effect without %s, as in dubbo-go; write %s and %s", said, tpsLimiter, TPSKey, TPSIntervalKey)
		}
	}
	idle(t.service)
	t.each(idle)
}

// budget translates the one of a place, and reports whether it limits anything.
func (t *translator) budget(p *place) (limited bool) {
	if t.givesWay(p, tpsBudget, ownBudget...) {
		return false
	}
	rate, rateOK := t.number(t.with(p, tpsLimitRate), tpsLimitRate, maxDubboLimit, allowedTPSRate)
	interval, intervalOK := t.number(t.with(p, tpsLimitInterval), tpsLimitInterval, maxInterval.Milliseconds(), allowedTPSInterval)
	algorithm, algorithmOK := t.algorithm(p)
	switch {
	case !rateOK || !intervalOK || !algorithmOK:
		return true
	case rate > 0 && interval > 0:
		t.take(p, tpsBudget, TPSKey, strconv.FormatInt(rate, 10),
			TPSIntervalKey, (time.Duration(interval) * time.Millisecond).String(), TPSAlgorithmKey, string(algorithm))
		return true
	}
	said := p.said(tpsLimitRate, tpsLimitInterval)
	if said == "" {
		return false
	}
	if p != t.service {
		t.take(p, tpsBudget, TPSKey, "0") // or it would be in the service's budget
	}
	t.warn("%s limits nothing, as in dubbo-go: it takes a rate and an interval of 1 and more", said)
	return false
}

// with is the place, or the service, that says what holds of a key there.
func (t *translator) with(p *place, flat string) *place {
	if !p.has(flat) {
		return t.service
	}
	return p
}

// algorithm is what a place's strategy is to Weir, "" where nothing is to be set.
func (t *translator) algorithm(p *place) (a Algorithm, ok bool) {
	strategy := t.with(p, tpsLimitStrategy)
	if own := p.own[TPSAlgorithmKey]; own != "" {
		if said := p.said(tpsLimitStrategy); said != "" {
			t.warn("%s has no effect beside %s%s=%s", said, p.prefix(), TPSAlgorithmKey, own)
		}
		return "", true
	}
	if _, stands := t.service.own[TPSAlgorithmKey]; stands && strategy == t.service {
		return "", true // it holds for the method, too
	}
	a, ok = algorithms[strategy.dubbo[tpsLimitStrategy].value]
	if !ok {
		t.fault(strategy, tpsLimitStrategy, "Weir's filter asks no strategy of others", allowedTPSStrategy)
	}
	return a, ok
}
