package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// answerFlags say how a server answers where a request says nothing.
type answerFlags struct {
	sampling samplingFlags
	system   string
	template string
	anyModel bool
	hosts    []string
}

func (a *answerFlags) declare(f *pflag.FlagSet) {
	f.BoolVar(&a.anyModel, "any-model", false, "take any model's name in requests for the only model, or the only one that is loaded")
	f.StringArrayVar(&a.hosts, "allow-host", nil, "name of this computer that requests may have as Host, such as that of a proxy before it (repeatable)")
	f.StringVar(&a.system, "system", "", "the system prompt of conversations that have none")
	f.StringVar(&a.template, "chat-template", "", "file with the chat template to use instead of the model's, if there is only one model")
	a.sampling.declareDraws(f)
}

// check looks at values before models are loaded.
func (a *answerFlags) check(several bool) error {
	if a.template != "" && several {
		return cli.Usagef("--chat-template is for one model")
	}
	_, err := a.sampling.over(sample.Neutral())
	return err
}

// open returns the chat template: of the file that --chat-template names, or the model's.
func (a *answerFlags) open(p *plans.Plan) (*chat.Template, error) {
	if a.template == "" {
		return chat.Open(p.Vocab, p.Dialect)
	}
	source, err := os.ReadFile(a.template)
	if err != nil {
		return nil, err
	}
	vocab := p.Vocab
	vocab.ChatTemplate = string(source)
	t, err := chat.New(vocab)
	if err == nil && t.Note() != "" { // what was asked for is not what would be used
		err = fmt.Errorf("%s: %s", a.template, t.Note())
	}
	return t, err
}
