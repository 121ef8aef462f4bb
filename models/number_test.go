package models

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strings"
	"testing"
)

func TestEqualNumbersReduceToTheSameText(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0e0", "-0": "0e0", "0.00": "0e0", "0e7": "0e0", "0e-7": "0e0",
		"1": "1e0", "1.0": "1e0", "10e-1": "1e0", "0.1E+1": "1e0", "100": "1e2", "1e2": "1e2",
		"-1.50": "-15e-1", "-15e-1": "-15e-1", "1e-05": "1e-5", "0.00001": "1e-5",
		"123456789012345678901234567890.5": "1234567890123456789012345678905e-1",
	} {
		n, ok := ParseNumber(json.Number(text))
		if got := n.Reduced().String(); !ok || got != want {
			t.Errorf("%s is reduced to %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "-", "1.", ".5", "1e", "0x1", "NaN", "1e99999999999"} {
		if n, ok := ParseNumber(json.Number(text)); ok {
			t.Errorf("%q is read as %s", text, n)
		}
	}
}

// Writing a number in full or reduced keeps its value, and the full form is plain JSON.
func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"0", "-0.0", "1e-05", "5.0", "1.50e1", "10e-31", "0e5", "1e30", strings.Repeat("9", 31)} {
		f.Add(seed)
	}
	plain := regexp.MustCompile(`^-?(0|[1-9][0-9]{0,29})(\.[0-9]{1,30})?$`)
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := ParseNumber(json.Number(text))
		if !ok || !n.within(30, 30) {
			return
		}
		value, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q is no number", text)
		}
		if full := n.plain().String(); !plain.MatchString(full) {
			t.Errorf("%s is written as %s", text, full)
		}
		for _, written := range []string{n.plain().String(), n.Reduced().String()} {
			if again, ok := new(big.Rat).SetString(written); !ok || again.Cmp(value) != 0 {
				t.Errorf("%s is written as %s", text, written)
			}
		}
	})
}
