package idna

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestNames decides names, most of them at the edges of a rule.
func TestNames(t *testing.T) {
	label, long := strings.Repeat("a", 63), strings.Repeat("ü", 60)
	for _, c := range []struct {
		name              string
		host, beyondASCII bool
	}{
		{"example.com", true, true}, {"Example.COM", true, true}, {"1a-b", true, true}, {label + "." + label, true, true},
		{"", false, false}, {".", false, false}, {"a..b", false, false}, {"a.", false, false}, {"-a", false, false}, {"a-", false, false},
		{label + "a", false, false}, {strings.Repeat(label+".", 4) + "a", false, false}, {"a_b", false, false}, {"a b", false, false}, {"ab--c", false, false},
		{"xn--bcher-kva.example", true, true}, {"XN--BCHER-KVA", true, true}, {"bücher.example", false, true}, {"BÜCHER", false, false},
		{"bu\u0308cher", false, false}, // not composed
		{"xn--", false, false}, {"xn--abc-", false, false}, {"xn--bcher-kva-", false, false}, {"xn--99999999", false, false},
		{long, false, false}, {"straße", false, true}, {"日本。jp", false, true}, {"日本．jp", false, true}, {"☃", false, false}, {"a\u200db", false, false},
		{"क्\u200dष", false, true}, {"क\u200dष", false, false}, {"بي\u200cبي", false, true}, {"ا\u200cب", false, false},
		{"l·l", false, true}, {"l·a", false, false}, {"α\u0375β", false, true}, {"α\u0375a", false, false}, {"א\u05f3", false, true}, {"\u05f3א", false, false},
		{"・カ", false, true}, {"・", false, false}, {"ب٠", false, true}, {"ب٠۰", false, false}, {"\u0301a", false, false}, {"ᄀ", false, false},
		{"אב", false, true}, {"אa", false, false}, {"aא", false, false}, {"א1", false, true}, {"1א", false, false}, {"א.1a", false, false}, {"א.a1", false, true},
		{"א\u05b0", false, true}, {"xn--4dba", true, true}, {"1.xn--4dba", false, false}, {"\xff", false, false},
	} {
		if have := Hostname(c.name); have != c.host {
			t.Errorf("%q: %v", c.name, have)
		}
		if have := Internationalized(c.name); have != c.beyondASCII {
			t.Errorf("%q: %v, internationalized", c.name, have)
		}
	}
}

// TestCode holds the samples of RFC 3492 section 7.1, and that what is encoded is decoded.
func TestCode(t *testing.T) {
	for text, code := range map[string]string{
		"ليهمابتكلموشعربي؟": "egbpdaj6bu4bxfgehfvwxn", "他们为什么不说中文": "ihqwcrb4cv8a8dqg056pqjye", "3年b組金八先生": "3b-ww4c5e180e575a65lsy2b",
		"安室奈美恵-with-super-monkeys": "-with-super-monkeys-pc58ag80a8qai00g7n9n", "-> $1.00 <-": "-> $1.00 <--",
	} {
		if have, ok := encode([]rune(text)); have != code || !ok {
			t.Errorf("%s: %s", text, have)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.OneOf(rapid.RuneFrom([]rune("az09-")), rapid.Rune()), 1, 40).Draw(t, "text")
		text = []rune(strings.ToLower(string(text)))
		for _, r := range text {
			if r < 0x80 && !isLDH(r) || r == 0xfffd {
				return
			}
		}
		code, ok := encode(text)
		if have, also := decode(code); !ok || !also || string(have) != string(text) {
			t.Fatalf("%q: %q, %q", string(text), code, string(have))
		}
	})
	rapid.Check(t, func(t *rapid.T) { // anything is read, or not
		decode(rapid.StringMatching(`[a-z0-9-]{0,60}`).Draw(t, "code"))
	})
}
