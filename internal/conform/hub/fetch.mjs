// Lists and fetches the files of a repository with Hugging Face's client, and prints a line for each: name, bytes, SHA-256.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { downloadFile, downloadFileToCacheDir, listFiles } from "@huggingface/hub";

const [hubUrl, repo, cacheDir] = process.argv.slice(2);
for await (const file of listFiles({ hubUrl, repo, recursive: true })) {
  const blob = await downloadFile({ hubUrl, repo, path: file.path });
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const kept = readFileSync(await downloadFileToCacheDir({ hubUrl, repo, path: file.path, cacheDir }));
  if (Buffer.compare(kept, bytes) !== 0) throw new Error(file.path + " is another in the cache");
  if (bytes.length !== file.size) throw new Error(`${file.path} has ${bytes.length} bytes, ${file.size} were listed`);
  console.log(file.path, bytes.length, createHash("sha256").update(bytes).digest("hex"));
}
