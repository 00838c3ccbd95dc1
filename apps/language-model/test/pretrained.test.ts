import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runApp } from "@halfstep/vitest/run-app";
import { afterAll, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "halfstep-gpt2-"));
afterAll(() => rmSync(folder, { recursive: true }));
const gpt2 = fileURLToPath(new URL("./golden/gpt2", import.meta.url));
const text = join(folder, "text.txt");
writeFileSync(text, "the cat sat on the mat; the rat sat on the cat. ".repeat(40));

async function run(...args: readonly string[]) {
  const ended = await runApp("language-model", [...args, "--device", "cpu", "--json"]);
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  return { ...ended, result: JSON.parse(ended.stdout) };
}

it("a GPT-2 with vocab.json and merges.txt is judged, trained and asked by flags, from either entry of its checkpoint", {
  timeout: 300_000,
}, async () => {
  const data = ["--text", text];
  const flags = [...data, "--pretrained", gpt2];
  const judge = ["evaluate", ...data, "--characters", "150", "--baseline", "0"];
  const [last, average] = await Promise.all([
    run(...judge, "--pretrained", gpt2),
    run(...judge, "--pretrained", gpt2, "--key", "ema.weights"),
  ]);
  expect(Math.abs(last.result.loss - average.result.loss)).toBeGreaterThan(0.01);

  const out = join(folder, "tuned");
  const training = ["--context", "16", "--precision", "float32", "--eval-characters", "150"];
  const steps = ["--max-steps", "2", "--batch-size", "2", "--warm-up", "0", "--lr", "1e-9"];
  const all = [...flags, ...training, ...steps, "--out", out];
  const tuned = await run("train", ...all, "--key", "ema.weights");
  expect(tuned.stderr).toContain(`weights of ${gpt2}`);
  // So small a rate changes nothing: these are the weights of the key.
  expect(tuned.result.runs[0].test.loss).toBeCloseTo(average.result.loss, 4);
  const judged = await run(...judge, "--model", out);
  expect(judged.result.loss).toBeCloseTo(average.result.loss, 4);

  const { result } = await run("predict", "--model", out, "--prompt", "the", "--length", "4");
  expect(result.text).toMatch(/^the/);
  // "the" is one token of merges.txt.
  expect(result.tokens).toHaveLength(5);
});

it("another entry than there is, is refused by the file's name", async () => {
  const flags = ["--pretrained", gpt2, "--key", "ema.average", "--text", text];
  const ended = await runApp("language-model", ["train", ...flags, "--out", join(folder, "none")]);
  expect([ended.code, ended.stderr]).toEqual([
    2,
    expect.stringMatching(/error: .*pytorch_model\.bin.*ema\.average/),
  ]);
});
