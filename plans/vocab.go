package plans

// Vocab is what a GGUF file says of its tokenizer. A nil pointer means that
// the file has no such key, and New then takes the default of the family.
type Vocab struct {
	Name  string // general.name
	Model string // tokenizer.ggml.model: "gpt2" or "llama"
	Pre   string // tokenizer.ggml.pre, for "gpt2" only

	Tokens []string
	Scores []float32 // one a token, for "llama" only
	Types  []int32   // one a token, or none: all normal
	Merges []string  // "left right" in the order of their rank, for "gpt2" only

	// tokenizer.ggml.*_token_id
	BOS, EOS, EOT, EOM, UNK, PAD *int32
	FIMPad, FIMRep, FIMSep       *int32

	// tokenizer.ggml.add_bos_token, add_eos_token, add_space_prefix
	AddBOS, AddEOS, AddSpacePrefix *bool

	ChatTemplate string // tokenizer.chat_template
}
