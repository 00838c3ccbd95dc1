import type { Launch } from "@halfstep/device";
import { expect, test } from "vitest";
import { accumulate } from "./copies/assign.js";
import { fill } from "./copies/fill.js";
import { type CpuBuffer, cpuTarget } from "./cpu.js";
import { CpuMemoryError } from "./cpu-memory-error.js";

test("a launch that a device would refuse is refused in the same words", () => {
  const target = cpuTarget();
  const out = { buffer: target.allocate(16), offset: 0, length: 4, dtype: "float32" } as const;
  const launch: Launch<CpuBuffer> = fill(out, 3);
  const { bindings, scalars } = launch;
  expect(() => target.launch({ ...launch, bindings: [...bindings, out] })).toThrow(
    /^kernel "fill" has 1 bindings \(\w+\), but got 2$/,
  );
  const [name = ""] = Object.keys(scalars);
  expect(() => target.launch({ ...launch, scalars: {} })).toThrow(
    new RegExp(`^kernel "fill" needs the scalar "${name}" \\(\\w+\\): add it to \`scalars\`$`),
  );
  target.launch(launch);
  expect([...target.read(out)]).toEqual([3, 3, 3, 3]);
});

test("a launch that writes a buffer which it reads is refused, as WebGPU does", () => {
  const target = cpuTarget();
  const buffer = target.allocate(64);
  const at = (offset: number) => ({ buffer, offset, length: 4, dtype: "float32" as const });
  expect(() => target.launch(accumulate({ input: at(0), out: at(32) }))).toThrow(
    'binding "y" of kernel "accumulate" shares a buffer with "x"',
  );
});

test.each(["float32", "float64"] as const)(
  "memory that the process does not have is refused with its size: %s",
  (arithmetic) => {
    const { allocate } = cpuTarget({ arithmetic });
    const bytes = arithmetic === "float32" ? 2 ** 50 : 2 ** 53;
    expect(() => allocate(2 ** 50)).toThrow(CpuMemoryError);
    expect(() => allocate(2 ** 50)).toThrow(`the CPU cannot allocate a buffer of ${bytes} bytes`);
  },
);
