import { DataError } from "@halfstep/data";

/** A tensor of a layers model. */
export interface KerasWeight {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

interface Listed {
  readonly name: string;
  readonly shape: readonly number[];
}

/**
 * The weights that a layers-model JSON lists, by name ("F_0/kernel"), from the files beside it: float32, little-endian, one
 * after the other through all files of a group.
 *
 * @param read the bytes of a file, by the name that the model has for it
 * @throws DataError where a list is malformed, or the files do not have the bytes that it promises
 */
export async function readWeights(
  model: unknown,
  source: string,
  read: (path: string) => Promise<Uint8Array>,
): Promise<ReadonlyMap<string, KerasWeight>> {
  const refuse = (problem: string): never => {
    throw new DataError(source, problem);
  };
  const manifest = (model as { weightsManifest?: unknown } | null)?.weightsManifest;
  if (!Array.isArray(manifest)) return refuse("has no weightsManifest");
  const weights = new Map<string, KerasWeight>();
  for (const { paths, weights: listed } of manifest) {
    if (!Array.isArray(paths) || !Array.isArray(listed))
      return refuse("has a group of weights without paths or weights");
    const bytes = await joined(paths, read, refuse);
    let offset = 0;
    for (const { name, shape } of listed.map((each) => checked(each, refuse))) {
      if (weights.has(name)) refuse(`lists ${name} twice`);
      const count = shape.reduce((a, b) => a * b, 1);
      const end = offset + 4 * count;
      if (end > bytes.length)
        refuse(`${paths} end at byte ${bytes.length}, inside of ${name}, which goes to ${end}`);
      const data = new Float32Array(count);
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      for (let i = 0; i < count; i++) data[i] = view.getFloat32(offset + 4 * i, true);
      weights.set(name, { shape, data });
      offset = end;
    }
    if (offset !== bytes.length)
      refuse(`${paths} have ${bytes.length - offset} bytes more than the weights that are listed`);
  }
  return weights;
}

async function joined(
  paths: readonly unknown[],
  read: (path: string) => Promise<Uint8Array>,
  refuse: (problem: string) => never,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (const path of paths) {
    // A model is data from elsewhere: it may name its neighbours, and nothing else on the disk.
    if (typeof path !== "string" || !/^[\w.-]+$/.test(path) || path.startsWith("."))
      return refuse(`names ${JSON.stringify(path)} as a file of weights: it must be beside it`);
    parts.push(await read(path));
  }
  return new Uint8Array(Buffer.concat(parts));
}

function checked(listed: unknown, refuse: (problem: string) => never): Listed {
  const { name, shape, dtype, quantization } = (listed ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof name !== "string" || !isShape(shape))
    return refuse("lists a weight without name or shape");
  if (dtype !== "float32" || quantization !== undefined)
    return refuse(
      `lists ${name} as ${quantization ? "quantized" : dtype}: only float32 is supported`,
    );
  return { name, shape };
}

const isShape = (shape: unknown): shape is readonly number[] =>
  Array.isArray(shape) && shape.every((size) => Number.isSafeInteger(size) && size >= 1);
