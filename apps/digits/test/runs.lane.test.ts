import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { doubts, runFields, withoutDeviceTime } from "./run-summary.js";
import { bundled, digits, saidOn, summaryOf, tiniest, tiny } from "./running.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-digits-"));
const inFolder = (name: string): string => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  await bundled();
});

test("the CPU does as well, where it is asked for", async () => {
  const out = inFolder("cpu");
  const ended = await digits([...tiniest, "--device", "cpu", "--out", out]);
  expect(ended.code).toBe(0);
  const { device, runs } = summaryOf(out);
  expect(device).toEqual({ kind: "cpu", adapter: expect.any(String), tier: "cpu" });
  expect(runs.map(withoutDeviceTime)).toEqual([runFields, runFields, runFields]);
  expect(runs.map(doubts)).toEqual([[], [], []]);
});

test("a run is stopped, resumed in another process, and ends with the bits of one that was not", async () => {
  const flags = ["--limit", "192", "--batch-size", "16", "--precision", "float32,float16"];
  const [whole, broken] = [inFolder("whole"), inFolder("broken")];
  const first = [...flags, "--out", broken, "--save-every", "4"];
  // Once: a second signal would end the process at once.
  const kill = (line: RegExp, signal: NodeJS.Signals) => {
    let isSent = false;
    return {
      onStderr(stderr: string, send: (signal: NodeJS.Signals) => void) {
        if (isSent || !line.test(stderr)) return;
        isSent = true;
        send(signal);
      },
    };
  };
  const saved = (): string[] =>
    readdirSync(join(broken, "checkpoints"), { recursive: true }).map(String);
  const replacing = await digits([...tiny, "--precision", "float32", "--out", broken]);
  const again = await digits([...tiny, "--precision", "float32", "--out", broken]);
  expect([replacing, again].map(({ stderr }) => stderr.includes("that this one replaces"))).toEqual(
    [false, true],
  );
  const others = await digits([
    ...[...tiny, "--precision", "bfloat16", "--out", broken],
    ...["--resume", "auto", "--static-loss-scale", "8"],
  ]);
  expect(others.stderr).toMatch(/^--static-loss-scale 8 is ignored: bfloat16 has no such/m);
  expect([others.code, saved().length > 0]).toEqual([2, true]);
  expect(saidOn(others).at(-1)).toMatch(
    /^error: .*was saved with --precision float32, not bfloat16: go on with the same flags$/,
  );
  const endings = [
    await digits([...flags, "--out", whole]),
    await digits(first, kill(/float32 +· epoch 1/, "SIGTERM")),
    await digits([...first, "--resume", "auto"], kill(/float16 +· epoch 1/, "SIGINT")),
  ];
  expect(endings.map(({ code }) => code)).toEqual([0, 143, 130]);
  expect(saved().some((name) => /^float16\/step-\d+\/manifest.json$/.test(name))).toBe(true);

  const other = await digits([...first, "--resume", "auto", "--seed", "3"]);
  expect(other.code).toBe(2);
  expect(saidOn(other).at(-1)).toMatch(
    /^error: .*was saved with --seed 0, not 3: go on with the same flags$/,
  );
  const last = await digits([...first, "--resume", "auto"]);
  expect(last.code).toBe(0);
  expect(last.stderr).toMatch(/^going on from .*float16\/step-\d+, after step \d+$/m);
  expect(readFileSync(join(broken, "metrics.jsonl"), "utf8")).toBe(
    readFileSync(join(whole, "metrics.jsonl"), "utf8"),
  );
  const results = (out: string) =>
    summaryOf(out).runs.map(({ parameterSha256, test, appliedSteps, finalScale }) => ({
      ...{ parameterSha256, test, appliedSteps, finalScale },
    }));
  expect(results(broken)).toEqual(results(whole));
});
