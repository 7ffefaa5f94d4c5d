package api

// routes is the table of endpoints.
func routes() []route {
	return []route{
		{"POST", "/v1/chat/completions", true, false, openai, handleChat},
		{"POST", "/v1/completions", true, false, openai, handleCompletion},
		{"POST", "/v1/embeddings", true, false, openai, handleEmbeddings},
		{"POST", "/v1/responses", false, false, openai, handleResponses},
		{"POST", "/v1/responses/input_tokens", false, false, openai, handleInputTokens},
		{"POST", "/v1/messages", false, false, anthropic, handleMessages},
		{"POST", "/v1/messages/count_tokens", false, false, anthropic, handleCount},
		{"GET", "/v1/models", true, false, openai, handleModels},
		{"GET", "/v1/models/{id...}", true, false, openai, handleModel},
		{"POST", "/tokenize", false, false, openai, handleTokenize},
		{"POST", "/detokenize", false, false, openai, handleDetokenize},
		{"POST", "/apply-template", false, false, openai, handleTemplate},
		{"GET", "/props", false, false, openai, handleProps},
		{"GET", "/slots", false, false, openai, handleSlots},
		{"GET", "/metrics", false, false, openai, handleMetrics},
		{"GET", "/load", false, false, openai, handleLoad},
		{"GET", "/version", false, true, openai, handleVersion},
		{"GET", "/live", false, true, openai, handleLive},
		{"GET", "/v1/health", true, true, openai, handleHealth},
		{"GET", "/ready", false, true, openai, handleHealth},
		{"POST", "/drain", false, false, openai, handleDrain},
	}
}
