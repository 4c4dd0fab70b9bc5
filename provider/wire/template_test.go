package wire

import (
	"strings"
	"testing"
)

func TestTemplatesMatchWhatDiffersInOneString(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, learned, data string
		match               bool
	}{
		{"the same again", `{"d":"one","n":1}`, `{"d":"one","n":1}`, true},
		{"another string", `{"d":"one","n":1}`, `{"d":"two \"\\u00e4\"","n":1}`, true},
		{"another number", `{"d":"one","n":1}`, `{"d":"one","n":2}`, false},
		{"another member", `{"d":"one","n":1}`, `{"d":"one","n":1,"m":2}`, false},
		{"a string that does not end", `{"d":"one","n":1}`, `{"d":"one`, false},
		{"a bad escape", `{"d":"one","n":1}`, `{"d":"\x","n":1}`, false},
		{"white space at the end", `{"d":"one"}`, `{"d":"two" } `, true},
		{"other padding", `{"d":"one","obfuscation":"abc","n":1}`, `{"d":"two","obfuscation":"x","n":1}`, true},
		{"padding that does not end", `{"d":"one","obfuscation":"abc","n":1}`, `{"d":"two","obfuscation":"x`, false},
		{"a counter", `{"d":"one","sequence_number":9}`, `{"d":"two","sequence_number":10}`, true},
		{"padding and a counter", `{"d":"one","obfuscation":"a","n":1,"sequence_number":9,"m":2}`, `{"d":"two","obfuscation":"bc","n":1,"sequence_number":1234,"m":2}`, true},
		{"a counter with more behind it", `{"d":"one","sequence_number":9}`, `{"d":"two","sequence_number":10,"m":1}`, false},
		{"a counter without a number", `{"d":"one","sequence_number":9}`, `{"d":"two","sequence_number":null}`, false},
		{"a counter that is no whole number", `{"d":"one","sequence_number":9}`, `{"d":"two","sequence_number":1.5}`, false},
		{"a counter that JSON does not allow", `{"d":"one","sequence_number":9}`, `{"d":"two","sequence_number":011}`, false},
		{"a counter cut off", `{"d":"one","sequence_number":9}`, `{"d":"two","sequence_number":`, false},
		{"another member before the counter", `{"d":"one","n":1,"sequence_number":9}`, `{"d":"two","n":2,"sequence_number":10}`, false},
	} {
		var template Template
		from := strings.Index(tt.learned, `one`)
		template.Learn([]byte(tt.learned), from, from+3)
		raw, ok := template.Match([]byte(tt.data))
		if ok != tt.match {
			t.Errorf("%s: match %v, want %v", tt.name, ok, tt.match)
		}
		if ok && !strings.Contains(tt.data, `"d":"`+string(raw)+`"`) {
			t.Errorf("%s: the string is %q", tt.name, raw)
		}
	}
	var template Template
	if _, ok := template.Match([]byte(`{"d":"one"}`)); ok {
		t.Error("a template that has learned nothing matches")
	}
}
