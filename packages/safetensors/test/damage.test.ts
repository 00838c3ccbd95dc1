import { expect, test } from "vitest";
import {
  readSafetensors,
  type Safetensors,
  SafetensorsError,
  type SafetensorsTensor,
  writeSafetensors,
} from "../src/index.js";

const file = writeSafetensors(
  {
    "fc.weight": { dtype: "F32", shape: [2, 3], data: Float32Array.of(1, 2, 3, 4, 5, 6) },
    "fc.bias": { dtype: "BF16", shape: [3], data: Uint16Array.of(7, 8, 9) },
    step: { dtype: "I64", shape: [], data: BigInt64Array.of(10n) },
  },
  { metadata: { format: "pt" } },
);
const headerEnd = 8 + new DataView(file.buffer).getUint32(0, true);

/** The content, or undefined where the file is refused. Any other error than the typed one goes on. */
function read(bytes: Uint8Array): Safetensors | undefined {
  try {
    return readSafetensors(bytes);
  } catch (error) {
    if (error instanceof SafetensorsError) return undefined;
    throw error;
  }
}

test("every truncation is refused, and everything longer", () => {
  const passed = Array.from({ length: file.length }, (_, length) => length).filter(
    (length) => read(file.subarray(0, length)) !== undefined,
  );
  expect(passed).toEqual([]);
  const longer = new Uint8Array(file.length + 1);
  longer.set(file);
  expect(read(longer)).toBeUndefined();
  expect(read(file)).toBeDefined();
});

test("a header with a byte cut out or doubled is refused", () => {
  const passed = Array.from({ length: headerEnd - 8 }, (_, index) => index + 8).flatMap((at) => {
    const cut = Uint8Array.from([...file.subarray(0, at), ...file.subarray(at + 1)]);
    const doubled = Uint8Array.from([...file.subarray(0, at + 1), ...file.subarray(at)]);
    return [cut, doubled].filter((bytes) => read(bytes) !== undefined);
  });
  expect(passed).toEqual([]);
});

const original = readSafetensors(file);
const bytesOf = ({ data }: SafetensorsTensor): string =>
  Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("hex");

/** What the damage did to a file that is still read; undefined where nothing names it. */
function effect({ metadata, tensors }: Safetensors): string | undefined {
  const names = Object.keys(tensors);
  const before = Object.keys(original.tensors);
  const renamed = names.filter((name) => !before.includes(name));
  const changed = names.filter((name, index) => {
    const now = tensors[name] as SafetensorsTensor;
    const then = original.tensors[before[index] as string] as SafetensorsTensor;
    return now.dtype !== then.dtype || `${now.shape}` !== `${then.shape}`;
  });
  const dataDiffers =
    names.map((name) => bytesOf(tensors[name] as SafetensorsTensor)).join() !==
    before.map((name) => bytesOf(original.tensors[name] as SafetensorsTensor)).join();
  const metadataDiffers = JSON.stringify(metadata) !== JSON.stringify(original.metadata);
  const effects = [
    ...(renamed.length === 1 && names.length === before.length ? ["name"] : []),
    ...(changed.length === 1 ? ["dtype"] : []),
    ...(dataDiffers ? ["data"] : []),
    ...(metadataDiffers ? ["metadata"] : []),
  ];
  return effects.length === 1 ? effects[0] : undefined;
}

/** Each bit flipped, and every character that means something to a header. */
const replacements = (byte: number): number[] => [
  ...Array.from({ length: 8 }, (_, bit) => byte ^ (1 << bit)),
  ...Buffer.from('{}[]:,"\\ \n\t0123456789-+.eEuBFIU_'),
];

test("every changed byte is refused, or changes one name, dtype of equal width, metadata text or element", () => {
  const effects = new Map<string | undefined, Set<number>>();
  const damaged = file.slice();
  for (const [at, byte] of file.entries()) {
    for (const value of replacements(byte)) {
      if (value === byte) continue;
      damaged[at] = value;
      const content = read(damaged);
      const found = content ? effect(content) : "refused";
      effects.set(found, (effects.get(found) ?? new Set()).add(at));
    }
    damaged[at] = byte;
  }
  const text = Buffer.from(file.subarray(0, headerEnd)).toString("latin1");
  const spans = (pattern: RegExp): number[] =>
    [...text.matchAll(pattern)].flatMap(({ index, 0: { length } }) =>
      Array.from({ length }, (_, i) => index + i),
    );
  const where = (found: string): number[] => [...(effects.get(found) ?? [])].sort((a, b) => a - b);
  // A change that does not show is one that only a checksum finds: checkpoints have one in their manifest.
  expect(new Set(effects.keys())).toEqual(
    new Set(["refused", "name", "dtype", "metadata", "data"]),
  );
  expect(where("data")).toEqual(Array.from(file.keys()).slice(headerEnd));
  expect(where("name")).toEqual(spans(/fc\.weight|fc\.bias|step/g));
  expect(where("metadata")).toEqual(spans(/format|(?<=")pt(?=")/g));
  // F32 is as wide as I32 and U32, I64 as U64, and BF16 as no other by one letter.
  expect(where("dtype")).toEqual(spans(/[FI](?=(32|64)")/g));
  // Nothing else passes: no brace, length, shape, offset or space.
  expect(where("refused").length).toBeGreaterThan(headerEnd - 20);
});
