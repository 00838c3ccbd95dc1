import { expect, test } from "vitest";
import { type DeviceKind, deviceKinds, programsOfSteps } from "./model-programs.js";

// What a device has to compile before the first step of each reference model, pinned: `vitest run test/program-counts.test.ts -u` after a
// change that was meant.

/** Mesa's software driver. */
const driver = deviceKinds[0] as DeviceKind;

const kibibytes = (bytes: number): string => Math.round(bytes / 1024).toLocaleString("en-US");

function rows(): readonly string[] {
  const known = new Map<string, Set<string>>();
  return programsOfSteps(driver).map(({ model, precision, programs }) => {
    const earlier = known.get(model) ?? new Set();
    const codes = [...programs.keys()];
    const shared = codes.filter((code) => earlier.has(code)).length;
    known.set(model, new Set([...earlier, ...codes]));
    const lengths = codes.map((code) => code.length);
    const bytes = lengths.reduce((sum, length) => sum + length, 0);
    const cells = [model, precision, codes.length, shared, kibibytes(bytes)];
    return `| ${[...cells, kibibytes(Math.max(...lengths))].join(" | ")} |`;
  });
}

const introduction = `# Programs of the reference models

The programs that a device compiles before the first step: AdamW, gradients clipped by their norm, loss scaling in float16. "Shared" programs are those of an
earlier precision of the same model, in the order of the table. Programs are those for Mesa's software driver. A device
compiles each program once, and drivers keep it on disk.

\`packages/trainer/test/program-counts.test.ts\` compares this page with the plans; \`npx vitest run test/program-counts.test.ts -u\` in \`packages/trainer\`
writes it anew. How long compiling takes is in [host](speed/host.md#cold-start).`;

const heading = [
  "| model | precision | programs | shared | WGSL, KiB | longest, KiB |",
  "|---|---|--:|--:|--:|--:|",
];

test("docs/benchmarks/programs.md says what there is to compile", async () => {
  const text = [introduction, "", ...heading, ...rows(), ""].join("\n");
  await expect(text).toMatchFileSnapshot("../../../docs/benchmarks/programs.md");
});
