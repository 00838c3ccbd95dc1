import type { Variable } from "@halfstep/tensor/functional";
import type { Carrier } from "./carrier.js";
import { Exchange } from "./wire/exchange.js";

/**
 * Each parameter once.
 * @throws TypeError for what are no parameters, or none
 */
export function parametersOf(call: string, parameters: Iterable<Variable>): readonly Variable[] {
  const isIterable = typeof (parameters as Partial<Iterable<Variable>>)?.[Symbol.iterator];
  const all = isIterable === "function" ? [...new Set(parameters)] : [];
  if (all.length === 0 || !all.every((each) => typeof each?.assign === "function"))
    throw new TypeError(`${call}: parameters are needed: pass model.parameters()`);
  return all;
}

/** The values of parameters, one after another. Waits for the device. */
export async function readValues(parameters: readonly Variable[]): Promise<Float32Array> {
  const values = new Float32Array(parameters.reduce((sum, { size }) => sum + size, 0));
  const arrays = await Promise.all(parameters.map((parameter) => parameter.toArray()));
  let offset = 0;
  for (const array of arrays) {
    values.set(array, offset);
    offset += array.length;
  }
  return values;
}

/** Writes what {@link readValues} reads. Outside steps. */
export async function writeValues(
  parameters: readonly Variable[],
  values: Float32Array,
): Promise<void> {
  const runtime = parameters[0]?.runtime;
  await runtime?.step(() => {
    let offset = 0;
    for (const parameter of parameters) {
      const part = values.subarray(offset, offset + parameter.size);
      parameter.assign(runtime.tensor(part, parameter.shape));
      offset += parameter.size;
    }
  });
}

/** Gives all ranks the values of rank 0, and returns them. */
export async function shareFirst(
  carrier: Carrier,
  parameters: readonly Variable[],
): Promise<Float32Array> {
  const values = await readValues(parameters);
  await new Exchange(carrier, { wire: "float32" }).mean(values, {
    ...{ weight: carrier.rank === 0 ? 1 : 0, label: "the first parameters" },
  });
  await writeValues(parameters, values);
  return values;
}
