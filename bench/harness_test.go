package main

import (
	"errors"
	"testing"
	"time"
)

func TestAPartEndsAtItsFirstError(t *testing.T) {
	went := false
	err := runPart(t.Context(), &report{}, options{}, func(b *bench) {
		b.begin("the first step")
		check(nil)
		if must(1, nil) == 1 {
			check(errors.New("it broke"))
		}
		went = true
	})
	if err == nil || err.Error() != "the first step: it broke" || went {
		t.Errorf("the part ended with %v, went on: %t", err, went)
	}
}

func TestAPartReportsWhyItsContextEnded(t *testing.T) {
	err := runPart(t.Context(), &report{}, options{}, func(b *bench) {
		b.fail(errors.New("the API server ended"))
		check(after(b.ctx, time.Now().Add(time.Minute)))
	})
	if err == nil || err.Error() != "prepare: the API server ended" {
		t.Errorf("the part ended with %v", err)
	}
}

func TestAMistakeOfTheBenchIsNotAnErrorOfThePart(t *testing.T) {
	defer func() {
		if ended := recover(); ended != "mistake" {
			t.Errorf("the panic is %v", ended)
		}
	}()
	_ = attempt(func() { panic("mistake") })
	t.Error("attempt returned")
}
