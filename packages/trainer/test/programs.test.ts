import { expect, test } from "vitest";
import { deviceKinds, programsOn } from "./model-programs.js";

// What no driver here can show of the programs of the reference models is read from their text. A lane compiles all of them.

/** What every device binds. */
const mostStorage = 8;
/** SwiftShader's compiler takes minutes and gigabytes for programs with more (64 took > 280 s and 10 GB). */
const mostShortCircuits = 16;

const bytesOfType: Readonly<Record<string, number>> = {
  ...{ f16: 2, f32: 4, u32: 4, i32: 4, bool: 4, "atomic<u32>": 4 },
  ...{ vec2f: 8, vec2u: 8, vec3f: 16, vec3u: 16, vec4f: 16, vec4u: 16, mat3x4f: 48 },
};

/** Bytes of workgroup memory that a program declares. */
function workgroupBytes(code: string): number {
  let bytes = 0;
  for (const [, type = ""] of code.matchAll(/var<workgroup>\s*\w+\s*:\s*([^;]+);/g)) {
    const array = /^array<\s*(.+?)\s*,\s*(\d+)u?\s*>$/.exec(type.trim());
    const size = bytesOfType[array?.[1] ?? type.trim()];
    if (size === undefined) throw new TypeError(`${type} has no known size`);
    bytes += size * Number(array?.[2] ?? 1);
  }
  return bytes;
}

/** Matrices that a program loads or stores with a stride that is no multiple of 16 bytes, which some drivers load wrong or slowly. */
function unalignedStrides(code: string): readonly string[] {
  const units = new Map<string, number>();
  for (const [, name = "", unit = ""] of code.matchAll(
    /var<workgroup>\s*(\w+)\s*:\s*array<\s*(\w+)/g,
  ))
    units.set(name, bytesOfType[unit] ?? Number.NaN);
  return [...code.matchAll(/subgroupMatrix(?:Load|Store)\b[^(]*\(&(\w+)(.*), (\w+)\)/g)]
    .map(([, name = "", , stride = ""]) => ({
      name,
      stride,
      bytes: Number.parseInt(stride, 10) * (units.get(name) ?? Number.NaN),
    }))
    .filter(({ bytes }) => !(bytes % 16 === 0))
    .map(({ name, stride }) => `${name} has a stride of ${stride}`);
}

test.each(deviceKinds.map((kind) => [kind.name, kind] as const))(
  "programs for %s ask for no more than it has",
  (_, kind) => {
    const { tier, subgroupSize, hardware } = kind;
    const allowed = new Set([
      ...(tier === "native" ? ["f16"] : []),
      ...(subgroupSize > 0 || hardware.matrixSubgroupSize > 0 ? ["subgroups"] : []),
      ...(hardware.matrixSubgroupSize > 0
        ? ["subgroup_size_control", "chromium_experimental_subgroup_matrix"]
        : []),
      ...(hardware.pinsSubgroups ? ["subgroup_size_control"] : []),
    ]);
    const wrong: string[] = [];
    const programs = programsOn(kind);
    for (const [code, { kernel }] of programs) {
      const say = (what: string): number =>
        wrong.push(`${kernel.name} (${kernel.variant}): ${what}`);
      for (const [, extension = ""] of code.matchAll(/^enable (\w+);/gm))
        if (!allowed.has(extension)) say(`enable ${extension}`);
      const bound = code.match(/var<storage/g)?.length ?? 0;
      if (bound > mostStorage) say(`${bound} storage bindings`);
      const bytes = workgroupBytes(code);
      if (bytes > hardware.workgroupBytes) say(`${bytes} bytes of workgroup memory`);
      const size = /@workgroup_size\(([^)]*)\)/.exec(code)?.[1]?.split(",").map(Number) ?? [];
      const invocations = size.reduce((a, b) => a * b, 1);
      if (!(invocations <= Math.min(hardware.workgroupInvocations, 1024)))
        say(`workgroups of ${size}`);
      const shortCircuits = code.match(/&&|\|\|/g)?.length ?? 0;
      if (shortCircuits > mostShortCircuits) say(`${shortCircuits} && and ||`);
      const usesLanes = code.includes("enable subgroups;");
      if (usesLanes && hardware.pinsSubgroups && !/@subgroup_size\(\d+\)/.test(code))
        say("no pinned subgroups");
      wrong.push(...unalignedStrides(code).map((stride) => `${kernel.name}: ${stride}`));
      if (code.includes("subgroupMatrix") && /\bsubgroup(Add|Shuffle|Max|Min|Broadcast)/.test(code))
        say("matrices and subgroup arithmetic in one program: an NVIDIA driver crashes");
    }
    expect(wrong).toEqual([]);
    const multiplying = [...programs.keys()].filter((code) =>
      code.includes("subgroupMatrixMultiplyAccumulate"),
    );
    expect(multiplying.length > 10).toBe(hardware.subgroupMatrices.length > 0);
    // Those of GPT and BERT with factors of float16.
    const attending = [...programs].filter(
      ([code, { kernel }]) =>
        /^attention(Query|KeyValue|$)/.test(kernel.name) && code.includes("enable f16;"),
    );
    expect(tier === "packed" || attending.length >= 4).toBe(true);
    for (const [code, { kernel }] of attending)
      expect([kernel.variant, multiplying.includes(code)]).toEqual([
        kernel.variant,
        hardware.subgroupMatrices.length > 0,
      ]);
    expect(programs.size).toBeGreaterThan(100);
  },
);
