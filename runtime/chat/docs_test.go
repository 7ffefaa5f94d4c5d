package chat

import (
	"os"
	"strings"
	"testing"
)

// The document has a row for every dialect.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/chat-templates.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Dialects() {
		if !strings.Contains(string(doc), "\n| `"+name+"` |") {
			t.Errorf("docs/chat-templates.md has no row for %s", name)
		}
	}
}
