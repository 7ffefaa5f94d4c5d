// Runs the npm clients against a server of gopher-chat and gopher-vectors: node clients.mjs URL
import assert from "node:assert/strict";
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, streamText, tool, stepCountIs } from "ai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { tool as langTool } from "@langchain/core/tools";
import { z } from "zod";

const url = process.argv[2];
assert(url, "usage: node clients.mjs URL");
const model = "gopher-chat";
const question = "What does strings.Cut do?";
const cut = "Cut slices s around the first instance of sep, returning the text before and after sep.";
const sum = "What is 17 plus 25?";
const numbers = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] };
const add = { type: "function", function: { name: "add", description: "Adds two numbers.", parameters: numbers } };
const user = (content) => [{ role: "user", content }];

const openai = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
const compatible = createOpenAICompatible({ name: "zincrun", baseURL: url + "/v1", includeUsage: true })(model);
const lang = (more) => new ChatOpenAI({ model, temperature: 0, maxTokens: 200, apiKey: "none", maxRetries: 0, configuration: { baseURL: url + "/v1" }, ...more });

const scenarios = {
  async "openai: chat"() {
    const r = await openai.chat.completions.create({ model, temperature: 0, messages: user(question) });
    assert.equal(r.choices[0].message.content, cut);
  },
  async "openai: stream"() {
    const stream = openai.chat.completions.stream({ model, temperature: 0, messages: user(question), stream_options: { include_usage: true } });
    const r = await stream.finalChatCompletion();
    assert.equal(r.choices[0].message.content, cut);
    assert(r.usage.completion_tokens > 0);
  },
  async "openai: tools run by the SDK"() {
    let called;
    const runner = openai.chat.completions.runTools({
      model, temperature: 0, messages: user(sum),
      tools: [{ type: "function", function: { ...add.function, parse: JSON.parse, function: (x) => { called = x; return String(x.a + x.b); } } }],
    });
    assert.match(await runner.finalContent(), /42/);
    assert.deepEqual(called, { a: 17, b: 25 });
  },
  async "openai: responses, streamed"() {
    const stream = openai.responses.stream({ model, temperature: 0, input: question });
    const r = await stream.finalResponse();
    assert.equal(r.output_text, cut);
    assert.equal(r.output[0].type, "reasoning");
  },
  async "openai: vectors, as bytes and as numbers"() {
    const input = ["package sort", "// Search uses binary search"];
    const bytes = await openai.embeddings.create({ model: "gopher-vectors", input }); // asks for base64 and decodes it
    const numbers = await openai.embeddings.create({ model: "gopher-vectors", input, encoding_format: "float", dimensions: 8 });
    const whole = await openai.embeddings.create({ model: "gopher-vectors", input, encoding_format: "float" });
    assert.equal(bytes.data.length, 2);
    for (const i of [0, 1]) {
      assert.deepEqual([...bytes.data[i].embedding], whole.data[i].embedding.map(Math.fround));
      assert.equal(numbers.data[i].embedding.length, 8);
      const length = Math.hypot(...whole.data[i].embedding.slice(0, 8));
      numbers.data[i].embedding.forEach((x, j) => assert(Math.abs(x - whole.data[i].embedding[j] / length) < 1e-6));
    }
  },
  async "langchain: vectors"() {
    const e = new OpenAIEmbeddings({ model: "gopher-vectors", apiKey: "none", maxRetries: 0, configuration: { baseURL: url + "/v1" } });
    const documents = await e.embedDocuments(["package sort", "package io"]);
    assert.deepEqual(await e.embedQuery("package io"), documents[1]);
  },
  async "openai: errors"() {
    await assert.rejects(openai.chat.completions.create({ model: "nothing", messages: user("a") }), (e) => e instanceof OpenAI.NotFoundError && e.code === "model_not_found");
    await assert.rejects(openai.chat.completions.create({ model, temperature: 99e99, messages: user("a") }), (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature");
  },
  async "openai: timeout and cancel"() {
    const body = { model, messages: user("Write a small HTTP server."), temperature: 0 };
    await assert.rejects(openai.chat.completions.create(body, { timeout: 20 }), OpenAI.APIConnectionTimeoutError);
    const stream = await openai.chat.completions.create({ ...body, stream: true });
    let n = 0;
    for await (const _ of stream) if (++n === 3) break;
    assert.equal(n, 3);
  },
  async "anthropic: message"() {
    const m = await anthropic.messages.create({ model, max_tokens: 200, temperature: 0, messages: user(question) });
    assert.deepEqual(m.content.map((b) => b.type), ["thinking", "text"]);
    assert.equal(m.content[1].text, cut);
  },
  async "anthropic: stream"() {
    const m = await anthropic.messages.stream({ model, max_tokens: 200, temperature: 0, messages: user(question) }).finalMessage();
    assert.equal(m.content.at(-1).text, cut);
    assert.equal(m.stop_reason, "end_turn");
  },
  async "anthropic: tools"() {
    const q = { model, max_tokens: 200, temperature: 0, messages: user(sum), tools: [{ name: "add", description: "Adds two numbers.", input_schema: numbers }] };
    const m = await anthropic.messages.stream(q).finalMessage();
    const use = m.content.at(-1);
    assert.deepEqual([use.type, use.name, use.input], ["tool_use", "add", { a: 17, b: 25 }]);
    const after = await anthropic.messages.create({ ...q, messages: [...q.messages, { role: "assistant", content: m.content }, { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "42" }] }] });
    assert.match(after.content.at(-1).text, /42/);
  },
  async "anthropic: errors"() {
    await assert.rejects(anthropic.messages.create({ model: "nothing", max_tokens: 5, messages: user("a") }), Anthropic.NotFoundError);
  },
  async "ai: text with reasoning"() {
    const r = await generateText({ model: compatible, temperature: 0, prompt: question, maxRetries: 0 });
    assert.equal(r.text, cut);
    assert.match(r.reasoningText, /strings\.Cut/);
    assert(r.usage.inputTokens > 0 && r.usage.outputTokens > 0);
  },
  async "ai: stream with a tool"() {
    let called;
    const r = streamText({
      model: compatible, temperature: 0, prompt: sum, maxRetries: 0, stopWhen: stepCountIs(3),
      tools: { add: tool({ description: "Adds two numbers.", inputSchema: z.object({ a: z.number(), b: z.number() }), execute: async (x) => { called = x; return x.a + x.b; } }) },
    });
    let text = "";
    for await (const t of r.textStream) text += t;
    assert.match(text, /42/);
    assert.deepEqual(called, { a: 17, b: 25 });
  },
  async "langchain: chat and stream"() {
    assert.equal((await lang().invoke(question)).content, cut);
    let text = "", tokens = 0;
    for await (const c of await lang().stream(question)) { text += c.content; tokens += c.usage_metadata?.output_tokens || 0; }
    assert.equal(text, cut);
    assert(tokens > 0);
  },
  async "langchain: tools"() {
    const t = langTool(async ({ a, b }) => String(a + b), { name: "add", description: "Adds two numbers.", schema: z.object({ a: z.number(), b: z.number() }) });
    const m = await lang().bindTools([t]).invoke(sum);
    assert.deepEqual(m.tool_calls.map((c) => [c.name, c.args]), [["add", { a: 17, b: 25 }]]);
  },
  async "langchain: cancel"() {
    await assert.rejects(lang().invoke("Write a small HTTP server.", { signal: AbortSignal.timeout(20) }));
  },
};

let failed = 0;
for (const [name, run] of Object.entries(scenarios)) {
  try { await run(); console.log("ok   " + name); }
  catch (e) { failed++; console.log("FAIL " + name + ": " + (e.stack || e)); }
}
process.exit(failed ? 1 : 0);
