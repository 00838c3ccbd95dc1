import { Adam, flatTensors } from "@halfstep/optim";
import { jaxAdam } from "../lanes/jax.js";
import { tfjsAdamOnly } from "../lanes/tfjs.js";
import { randomNumbers } from "../samples.js";
import type { Case, Workload } from "../workload.js";

const tensors = 20;
const shape = [256, 256] as const;
const size = shape[0] * shape[1];
const count = tensors * size;
const lr = 1e-2;
/** Updates after which parameters are compared. */
const updates = 3;

const names = Array.from({ length: tensors }, (_, i) => `w${i}`);
const parameter = (i: number) => randomNumbers(size, 1, 10 + i);
const gradient = (i: number) => randomNumbers(size, 0.1, 100 + i);
const joined = (parts: readonly ArrayLike<number>[]): Float32Array => {
  const all = new Float32Array(count);
  for (const [i, part] of parts.entries()) all.set(part, i * size);
  return all;
};

const adam: Case = {
  name: `Adam, ${tensors} tensors of ${size}`,
  isQuick: true,
  precisions: ["float32"],
  // Parameter, gradient and two moments are read; all but the gradient are written.
  cost: () => ({ operations: 12 * count, bytes: 7 * 4 * count }),
  tolerance: { float32: 1e-4, float16: 0, bfloat16: 0 },
  on: {
    async halfstep(library) {
      const place = await library.open();
      const { target } = place.runtime;
      const shapes = Object.fromEntries(names.map((name) => [name, shape]));
      const flat = flatTensors(target, shapes);
      const at = (buffer: typeof flat.values, i: number) =>
        ({
          buffer,
          offset: (flat.segments[i]?.offset ?? 0) * 4,
          length: size,
          dtype: "float32",
        }) as const;
      for (const i of names.keys()) {
        target.write(at(flat.values, i), parameter(i));
        target.write(at(flat.gradients, i), gradient(i));
      }
      const optimizer = new Adam(target, flat, { lr });
      const run = () => place.runtime.step(() => optimizer.step());
      return {
        run,
        async result() {
          for (let i = 0; i < updates; i++) await run();
          const parts = names.map((_, i) => target.read(at(flat.values, i)));
          return joined(await Promise.all(parts));
        },
        facts: () => ({ allocatorPeakBytes: place.device.memory.peak }),
        drain: () => place.device.gpu.queue.onSubmittedWorkDone(),
        dispose: () => place.device.destroy(),
      };
    },
    async jax(library) {
      const { read, ...prepared } = jaxAdam(
        library,
        names.map((_, i) => [parameter(i), gradient(i), shape] as const),
        lr,
      );
      return { ...prepared, result: async () => joined(await read(updates)) };
    },
    async tfjs(library) {
      const { read, ...prepared } = tfjsAdamOnly(
        library,
        names.map((_, i) => [parameter(i), gradient(i), shape] as const),
        lr,
      );
      return { ...prepared, result: async () => joined(await read(updates)) };
    },
  },
};

export const optimizers: Workload = {
  name: "optimizer",
  title: "Optimizer step",
  level: "operation",
  cases: [adam],
};
