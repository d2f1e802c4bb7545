package main

import (
	"os"
	"strings"
	"testing"
)

const page = "# X\n\n## Quick start\n\n```sh\nmake run\n```\ntext\n```sh\necho a\n```\n```json\n{\"execution_time_ms\":7}\n```\n" +
	"```sh\necho b\n```\n\n## Other\n```sh\nrm -rf /\n```\n"

func TestStepsOf(t *testing.T) {
	steps, err := stepsOf(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []step{{command: "make run"}, {"echo a", true, "{\"execution_time_ms\":7}\n"}, {command: "echo b"}}
	if len(steps) != len(want) {
		t.Fatalf("got %d steps, want %d: %v", len(steps), len(want), steps)
	}
	for i := range want {
		if steps[i] != want[i] {
			t.Errorf("step %d: got %v, want %v", i, steps[i], want[i])
		}
	}
}

func TestStepsOfRefuses(t *testing.T) {
	f := func(page, want string) {
		t.Helper()
		if _, err := stepsOf(page); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	f("# X\n", "no section")
	f("# X\n## Quick start\n```json\n1\n```\n", "without a command")
	f("# X\n## Quick start\n```sh\nmake run\n```\n", "too few")
}

func TestCheck(t *testing.T) {
	f := func(s step, ok bool) {
		t.Helper()
		if err := s.check(); (err == nil) != ok {
			t.Errorf("%v: got %v", s, err)
		}
	}
	f(step{`echo '{"execution_time_ms":12}'`, true, "{\"execution_time_ms\":7}\n"}, true)
	f(step{"echo a", true, "b"}, false)
	f(step{"echo a; false", true, "a"}, false)
	f(step{command: "echo anything"}, true)
}

// TestReadme finds a README that the stage of `make check` could not run.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := stepsOf(string(text))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Quick start\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if all, inside := strings.Count(string(text), "\n```sh\n"), strings.Count(section, "\n```sh\n"); all != inside {
		t.Errorf("%d blocks of commands are outside of the quick start, where nothing runs them", all-inside)
	}
	if steps[0].command != "make run" {
		t.Errorf("the quick start begins with %q", steps[0].command)
	}
}
