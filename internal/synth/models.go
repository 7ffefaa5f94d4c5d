package synth

// Published are models in the shapes in which they are published, one or more of every
// kind of layer.
var Published = []Shape{
	{
		Name: "qwen3-8b", Arch: "qwen3", Quant: "Q4_K_M", Layers: 36, Embd: 4096, FF: 12288, Vocab: 151936, Ctx: 40960,
		Heads: 32, KVHeads: 8, HeadDim: 128, RopeBase: 1e6,
	},
	{
		Name: "qwen35-35b-a3b", Arch: "qwen35moe", Quant: "UD-Q4_K_M", Layers: 40, Embd: 2048, Vocab: 248320, Ctx: 262144,
		Heads: 16, KVHeads: 2, HeadDim: 256, RopeDims: 64, RopeBase: 1e7,
		Experts: Experts{Count: 256, Used: 8, FF: 512, Shared: 512}, DeltaNet: DeltaNet{KeyHeads: 16, ValueHeads: 32, State: 128, Taps: 4, Interval: 4},
	},
	{
		Name: "qwen3-0.6b", Arch: "qwen3", Quant: "Q4_K_M", Layers: 28, Embd: 1024, FF: 3072, Vocab: 151936, Ctx: 40960,
		Heads: 16, KVHeads: 8, HeadDim: 128, RopeBase: 1e6, Tied: true,
	},
	{
		Name: "llama-1b", Arch: "llama", Quant: "Q4_K_M", Layers: 16, Embd: 2048, FF: 8192, Vocab: 128256, Ctx: 131072,
		Heads: 32, KVHeads: 8, HeadDim: 64, RopeBase: 5e5, Tied: true,
	},
	{
		Name: "qwen3-14b", Arch: "qwen3", Quant: "Q4_K_M", Layers: 40, Embd: 5120, FF: 17408, Vocab: 151936, Ctx: 40960,
		Heads: 40, KVHeads: 8, HeadDim: 128, RopeBase: 1e6,
	},
	{
		Name: "llama-8b", Arch: "llama", Quant: "Q6_K", Layers: 32, Embd: 4096, FF: 14336, Vocab: 128256, Ctx: 131072,
		Heads: 32, KVHeads: 8, HeadDim: 128, RopeBase: 5e5,
	},
	{
		Name: "qwen3-4b", Arch: "qwen3", Quant: "Q5_K_M", Layers: 36, Embd: 2560, FF: 9728, Vocab: 151936, Ctx: 40960,
		Heads: 32, KVHeads: 8, HeadDim: 128, RopeBase: 1e6, Tied: true,
	},
	{
		Name: "qwen3-30b-a3b", Arch: "qwen3moe", Quant: "Q4_K_M", Layers: 48, Embd: 2048, Vocab: 151936, Ctx: 40960,
		Heads: 32, KVHeads: 4, HeadDim: 128, RopeBase: 1e6, Experts: Experts{Count: 128, Used: 8, FF: 768},
	},
	{
		Name: "qwen2-7b", Arch: "qwen2", Quant: "Q4_0", Layers: 28, Embd: 3584, FF: 18944, Vocab: 152064, Ctx: 32768,
		Heads: 28, KVHeads: 4, HeadDim: 128, RopeBase: 1e6,
	},
	{
		Name: "qwen35-27b", Arch: "qwen35", Quant: "Q8_0", Layers: 64, Embd: 5120, FF: 17408, Vocab: 248320, Ctx: 262144,
		Heads: 24, KVHeads: 4, HeadDim: 256, RopeDims: 64, RopeBase: 1e7,
		DeltaNet: DeltaNet{KeyHeads: 16, ValueHeads: 48, State: 128, Taps: 4, Interval: 4},
	},
	{
		Name: "gpt-oss-20b", Arch: "gpt-oss", Quant: "MXFP4", Layers: 24, Embd: 2880, Vocab: 201088, Ctx: 131072,
		Heads: 64, KVHeads: 8, HeadDim: 64, RopeBase: 150000, Experts: Experts{Count: 32, Used: 4, FF: 2880}, Windows: Windows{Size: 128},
	},
	{
		Name: "gemma4-26b-a4b", Arch: "gemma4", Quant: "Q4_K_M", Layers: 30, Embd: 2816, FF: 2112, Vocab: 262144, Ctx: 262144, Tied: true,
		Heads: 16, KVHeads: 8, HeadDim: 256, RopeBase: 1e6, Experts: Experts{Count: 128, Used: 8, FF: 704},
		Windows: Windows{Size: 1024, Period: 6, WideDim: 512, WideHeads: 2},
	},
	{
		Name: "gemma4-e4b", Arch: "gemma4", Quant: "Q4_0", Layers: 42, Embd: 2560, FF: 10240, Vocab: 262144, Ctx: 131072, Tied: true,
		Heads: 8, KVHeads: 2, HeadDim: 256, RopeBase: 1e6, Windows: Windows{Size: 512, Period: 6, WideDim: 512, WideHeads: 2, Own: 24, PerLayer: 256},
	},
	{
		Name: "gemma3-12b", Arch: "gemma3", Quant: "Q4_K_M", Layers: 48, Embd: 3840, FF: 15360, Vocab: 262208, Ctx: 131072, Tied: true,
		Heads: 16, KVHeads: 8, HeadDim: 256, RopeBase: 1e6, Windows: Windows{Size: 1024},
	},
	{
		Name: "glm45-air", Arch: "glm4moe", Quant: "Q4_K_M", Layers: 46, Embd: 4096, FF: 10944, Vocab: 151552, Ctx: 131072,
		Heads: 96, KVHeads: 8, HeadDim: 128, RopeDims: 64, RopeBase: 1e6, Experts: Experts{Count: 128, Used: 8, FF: 1408},
	},
	{
		Name: "glm47-flash", Arch: "deepseek2", Quant: "Q4_K_M", Layers: 47, Embd: 2048, FF: 10240, Vocab: 154880, Ctx: 202752,
		Heads: 20, KVHeads: 1, HeadDim: 576, RopeDims: 64, RopeBase: 1e6, Experts: Experts{Count: 64, Used: 4, FF: 1536},
		Latent: Latent{Query: 768, Width: 512, Key: 192, Value: 256},
	},
	{
		Name: "nemotron3-nano", Arch: "nemotron_h_moe", Quant: "Q4_K_M", Layers: 52, Embd: 2688, Vocab: 131072, Ctx: 262144,
		Heads: 32, KVHeads: 2, HeadDim: 128, RopeBase: 1e4, Experts: Experts{Count: 128, Used: 6, FF: 1856, Shared: 3712},
		Mamba: Mamba{Inner: 4096, State: 128, Heads: 64, Groups: 8}, Mixers: "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
	},
	{
		// We lack the heads and widths of Gemma 4's 12B. These are Gemma 3's, with Gemma 4's wide layers, and give the
		// published number of parameters.
		Name: "gemma4-12b", Arch: "gemma4", Quant: "Q4_K_M", Layers: 48, Embd: 3840, FF: 15360, Vocab: 262144, Ctx: 262144, Tied: true,
		Heads: 16, KVHeads: 8, HeadDim: 256, RopeBase: 1e6, Windows: Windows{Size: 1024, Period: 6, WideDim: 512, WideHeads: 2},
	},
	{
		Name: "lfm2-8b-a1b", Arch: "lfm2moe", Quant: "Q4_K_M", Layers: 24, Embd: 2048, FF: 7168, Vocab: 65536, Ctx: 128000, Tied: true,
		Heads: 32, KVHeads: 8, HeadDim: 64, RopeBase: 1e6, Experts: Experts{Count: 32, Used: 4, FF: 1792}, Mixers: "CC*CCC*CCC*CCC*CCC*CC*CC",
	},
	{
		Name: "granite4-h-tiny", Arch: "granitehybrid", Quant: "Q4_K_M", Layers: 40, Embd: 1536, Vocab: 100352, Ctx: 131072, Tied: true,
		Heads: 12, KVHeads: 4, HeadDim: 128, RopeBase: 1e4, Experts: Experts{Count: 64, Used: 6, FF: 512, Shared: 1024},
		Mamba: Mamba{Inner: 3072, State: 128, Heads: 48, Groups: 1}, Mixers: "MMMMM*MMMM",
	},
}

// Small returns models of few layers, dense and of experts, in every quantization, and one
// with recurrent layers: enough for every weight layout and every family of kernels.
func Small() []Shape {
	var list []Shape
	for _, quant := range Quants() {
		dense := Shape{
			Name: "small-dense-" + quant, Arch: "qwen3", Quant: quant, Layers: 1, Embd: 1024, FF: 3072, Vocab: 4096, Ctx: 4096,
			Heads: 16, KVHeads: 8, HeadDim: 128, RopeBase: 1e6,
		}
		experts := dense
		experts.Name, experts.Arch, experts.FF = "small-experts-"+quant, "qwen3moe", 0
		experts.Experts = Experts{Count: 32, Used: 4, FF: 768}
		list = append(list, dense, experts)
	}
	return append(list, Shape{
		Name: "small-delta", Arch: "qwen35moe", Quant: "UD-Q4_K_M", Layers: 2, Embd: 1024, Vocab: 4096, Ctx: 4096,
		Heads: 8, KVHeads: 2, HeadDim: 256, RopeDims: 64, RopeBase: 1e7,
		Experts: Experts{Count: 32, Used: 4, FF: 512, Shared: 512}, DeltaNet: DeltaNet{KeyHeads: 8, ValueHeads: 16, State: 128, Taps: 4, Interval: 2},
	})
}
