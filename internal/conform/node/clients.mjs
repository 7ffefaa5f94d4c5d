// Runs the npm clients against a server of gopher-chat and gopher-vectors: node clients.mjs URL [PATTERN]
import assert from "node:assert/strict";
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
import { zodFunction, zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { embedMany, generateObject, generateText, streamObject, streamText, tool, stepCountIs } from "ai";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Ollama } from "ollama";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { tool as langTool } from "@langchain/core/tools";
import { z } from "zod";

const url = process.argv[2];
assert(url, "usage: node clients.mjs URL [PATTERN]");
const model = "gopher-chat";
const question = "What does strings.Cut do?";
const cut = "Cut slices s around the first instance of sep, returning the text before and after sep.";
const sum = "What is 17 plus 25?";
const numbers = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] };
const add = { type: "function", function: { name: "add", description: "Adds two numbers.", parameters: numbers } };
// What answers are held to, with all kinds of bounds; short, since the model is small.
const book = z.object({
  title: z.string().min(1).max(12), year: z.number().int().min(1950).max(2030), rating: z.number().min(0).max(5),
  tags: z.array(z.enum(["go", "tools", "tests"])).min(1).max(2), author: z.object({ name: z.string().max(10), email: z.string().max(20).nullable() }),
});
const bookSchema = z.toJSONSchema(book);
const describe = "Describe a book about Go as JSON.";
const user = (content) => [{ role: "user", content }];

const openai = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
const compatible = createOpenAICompatible({ name: "zincrun", baseURL: url + "/v1", includeUsage: true })(model);
const vendors = { openai: createOpenAI({ baseURL: url + "/v1", apiKey: "none" }), anthropic: createAnthropic({ baseURL: url + "/v1", apiKey: "none" }) };
// The three providers of the package ai; that of OpenAI speaks Responses, and refers to items of earlier answers.
const providers = { compatible, openai: vendors.openai(model), anthropic: vendors.anthropic(model) };
const ollama = new Ollama({ host: url });
const structured = createOpenAICompatible({ name: "zincrun", baseURL: url + "/v1", supportsStructuredOutputs: true })(model);
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
  async "openai: parse, by chat, a stream and responses"() {
    const body = { model, temperature: 0, max_tokens: 300, reasoning_effort: "none", messages: user(describe) };
    const format = zodResponseFormat(book, "book");
    book.parse((await openai.chat.completions.parse({ ...body, response_format: format })).choices[0].message.parsed);
    book.parse((await openai.chat.completions.stream({ ...body, response_format: format }).finalChatCompletion()).choices[0].message.parsed);
    const r = await openai.responses.parse({ model, temperature: 0, max_output_tokens: 400, reasoning: { effort: "none" }, input: describe, text: { format: zodTextFormat(book, "book") } });
    book.parse(r.output_parsed);
  },
  async "openai: a strict tool that must be called"() {
    const r = await openai.chat.completions.parse({
      model, temperature: 0, max_tokens: 300, reasoning_effort: "none", messages: user(describe), tool_choice: "required", tools: [zodFunction({ name: "save", parameters: book })],
    });
    const call = r.choices[0].message.tool_calls[0].function;
    assert.equal(call.name, "save");
    book.parse(call.parsed_arguments);
  },
  async "openai: a schema that is not supported"() {
    const schema = { type: "array", unevaluatedItems: false };
    await assert.rejects(openai.chat.completions.create({ model, messages: user("a"), response_format: { type: "json_schema", json_schema: { name: "x", schema } } }),
      (e) => e instanceof OpenAI.BadRequestError && e.code === "unsupported_schema" && /unevaluatedItems/.test(e.message));
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
  async "anthropic: output_config, and a strict tool"() {
    const body = { model, max_tokens: 400, temperature: 0, thinking: { type: "disabled" }, messages: user(describe) };
    const m = await anthropic.messages.create({ ...body, output_config: { format: { type: "json_schema", schema: bookSchema } } });
    book.parse(JSON.parse(m.content.at(-1).text));
    const called = await anthropic.messages.create({ ...body, tools: [{ name: "save", strict: true, input_schema: bookSchema }], tool_choice: { type: "any" } });
    book.parse(called.content.at(-1).input);
  },
  async "ollama: format"() {
    const r = await ollama.chat({ model, messages: user(describe), think: false, options: { temperature: 0, num_predict: 300 }, format: bookSchema });
    book.parse(JSON.parse(r.message.content));
  },
  async "anthropic: errors"() {
    await assert.rejects(anthropic.messages.create({ model: "nothing", max_tokens: 5, messages: user("a") }), Anthropic.NotFoundError);
  },
  async "openai: responses, a tool and a further turn"() {
    const tools = [{ type: "function", name: "add", description: "Adds two numbers.", parameters: numbers, strict: false }];
    const r = await openai.responses.create({ model, temperature: 0, input: sum, tools });
    const call = r.output.at(-1);
    assert.deepEqual([call.type, call.name, JSON.parse(call.arguments)], ["function_call", "add", { a: 17, b: 25 }]);
    const after = await openai.responses.create({ model, temperature: 0, previous_response_id: r.id, tools, input: [{ type: "function_call_output", call_id: call.call_id, output: "42" }] });
    assert.match(after.output_text, /42/);
    const n = await openai.responses.inputTokens.count({ model, input: sum });
    assert(n.input_tokens > 5 && n.object === "response.input_tokens");
  },
  async "anthropic: an answer that has begun"() {
    const m = await anthropic.messages.create({ model, max_tokens: 100, temperature: 0, messages: [...user(question), { role: "assistant", content: "Cut slices s around" }] });
    assert.equal("Cut slices s around" + m.content[0].text, cut);
  },
  async "anthropic: a prompt that is too long"() {
    const long = "word ".repeat(20000);
    await assert.rejects(anthropic.messages.create({ model, max_tokens: 5, messages: user(long) }), /prompt is too long[^0-9]*\d+ tokens > \d+ maximum/);
    await assert.rejects(openai.chat.completions.create({ model, messages: user(long) }), (e) => e.code === "context_length_exceeded" && /maximum context length is \d+ tokens/.test(e.message));
  },
  ...Object.fromEntries(Object.entries(providers).flatMap(([name, provider]) => [
    [`ai, ${name}: text with reasoning`, async () => {
      const r = await generateText({ model: provider, temperature: 0, prompt: question, maxRetries: 0, maxOutputTokens: 200 });
      assert.equal(r.text, cut);
      if (name !== "openai") assert.match(r.reasoningText, /strings\.Cut/); // which has places for summaries only
      assert(r.usage.inputTokens > 0 && r.usage.outputTokens > 0);
    }],
    [`ai, ${name}: stream with a tool`, async () => {
      let called;
      const r = streamText({
        model: provider, temperature: 0, prompt: sum, maxRetries: 0, maxOutputTokens: 200, stopWhen: stepCountIs(3),
        tools: { add: tool({ description: "Adds two numbers.", inputSchema: z.object({ a: z.number(), b: z.number() }), execute: async (x) => { called = x; return x.a + x.b; } }) },
      });
      let text = "";
      for await (const t of r.textStream) text += t;
      assert.match(text, /42/);
      assert.deepEqual(called, { a: 17, b: 25 });
    }],
  ])),
  async "ai: vectors"() {
    const r = await embedMany({ model: vendors.openai.embedding("gopher-vectors"), values: ["package sort", "package io"], maxRetries: 0 });
    assert.equal(r.embeddings.length, 2);
  },
  async "ai: errors"() {
    for (const provider of [vendors.openai("nothing"), vendors.anthropic("nothing")])
      await assert.rejects(generateText({ model: provider, prompt: "a", maxRetries: 0 }), (e) => e.statusCode === 404 && /there is no model/.test(e.message));
  },
  async "ollama: chat and generate"() {
    const options = { temperature: 0 };
    const r = await ollama.chat({ model, messages: user(question), options });
    assert.equal(r.message.content, cut);
    assert.match(r.message.thinking, /strings\.Cut/);
    assert(r.eval_count > 0 && r.prompt_eval_count > 0 && r.total_duration > 0);
    assert.equal((await ollama.generate({ model, prompt: question, options })).response, cut);
    let text = "", last;
    for await (const part of await ollama.chat({ model, messages: user(question), stream: true, options })) { text += part.message.content; last = part; }
    assert.equal(text, cut);
    assert.equal(last.done_reason, "stop");
    assert.equal((await ollama.chat({ model, messages: user(question), think: false, options })).message.thinking, undefined);
  },
  async "ollama: tools"() {
    const q = { model, messages: user(sum), tools: [add], options: { temperature: 0 } };
    const r = await ollama.chat(q);
    assert.deepEqual(r.message.tool_calls.map((c) => [c.function.name, c.function.arguments]), [["add", { a: 17, b: 25 }]]);
    const after = await ollama.chat({ ...q, messages: [...q.messages, r.message, { role: "tool", tool_name: "add", content: "42" }] });
    assert.match(after.message.content, /42/);
  },
  async "ollama: a schema"() {
    const format = { type: "object", properties: { sum: { type: "integer", enum: [42] } }, required: ["sum"] };
    assert.deepEqual(JSON.parse((await ollama.chat({ model, messages: user(sum), format, options: { temperature: 0 } })).message.content), { sum: 42 });
  },
  async "ollama: vectors"() {
    const r = await ollama.embed({ model: "gopher-vectors", input: ["package sort", "package io"] });
    assert.equal(r.embeddings.length, 2);
    assert.deepEqual((await ollama.embeddings({ model: "gopher-vectors", prompt: "package io" })).embedding, r.embeddings[1]);
  },
  async "ollama: models"() {
    assert((await ollama.list()).models.some((m) => m.name === model));
    assert((await ollama.ps()).models.some((m) => m.name === model));
    const shown = await ollama.show({ model });
    assert.deepEqual(shown.capabilities, ["completion", "tools", "thinking"]);
    assert.deepEqual((await ollama.show({ model: "gopher-vectors" })).capabilities, ["embedding"]);
    assert.match((await ollama.version()).version, /^\d+\.\d+\.\d+$/);
  },
  async "ollama: errors"() {
    await assert.rejects(ollama.chat({ model: "nothing", messages: user("a") }), (e) => e.status_code === 404 && /there is no model/.test(e.message));
    await assert.rejects(ollama.chat({ model, messages: user("a"), format: "yaml" }), /format/);
    await assert.rejects(ollama.chat({ model, messages: [{ role: "user", content: "a", images: ["AAAA"] }] }), /images are not supported/);
  },
  async "ai: objects, whole and as a stream"() {
    const q = { model: structured, temperature: 0, maxOutputTokens: 500, prompt: describe, schema: book, maxRetries: 0 };
    book.parse((await generateObject(q)).object);
    const r = streamObject(q);
    let partial;
    for await (const p of r.partialObjectStream) partial = p;
    assert.deepEqual(await r.object, partial);
    assert.equal((await generateObject({ ...q, schema: undefined, output: "enum", enum: ["yes", "no"] })).object.match(/^(yes|no)$/)?.length, 2);
  },
  async "langchain: structured output in all modes"() {
    for (const method of ["jsonSchema", "functionCalling"]) {
      book.parse(await lang({ maxTokens: 500 }).withStructuredOutput(book, { name: "book", method }).invoke(describe));
    }
    // In this mode the request has no schema: the answer is any object, which this model ends for few questions.
    const any = await lang().withStructuredOutput(z.object({}).loose(), { name: "any", method: "jsonMode" }).invoke(sum);
    assert.equal(typeof any, "object");
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
  async "langchain: errors"() {
    await assert.rejects(lang({ model: "nothing" }).invoke("a"), (e) => e.status === 404);
  },
  async "langchain: cancel"() {
    await assert.rejects(lang().invoke("Write a small HTTP server.", { signal: AbortSignal.timeout(20) }));
  },
};

let failed = 0;
for (const [name, run] of Object.entries(scenarios)) {
  if (process.argv[3] && !name.match(process.argv[3])) continue;
  try { await run(); console.log("ok   " + name); }
  catch (e) { failed++; console.log("FAIL " + name + ": " + (e.stack || e)); }
}
process.exit(failed ? 1 : 0);
