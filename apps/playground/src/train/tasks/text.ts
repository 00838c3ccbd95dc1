import { philox4x32 } from "@halfstep/formats/philox";
import { GPT } from "@halfstep/models";
import { crossEntropy, noGrad } from "@halfstep/tensor";
import { nurseryRhyme } from "../nursery-rhyme.js";
import type { Task, TaskParts } from "./task.js";

const characters = [...new Set(nurseryRhyme)].sort();
const tokens = Uint32Array.from(nurseryRhyme, (character) => characters.indexOf(character));

const batch = 8;
const length = 64;

/** Divides logits before a character is drawn: below 1 it prefers the likely ones. */
const temperature = 0.6;

/** Characters of the rhyme for a step, and those that follow each. */
function windowsOf(step: number): { readonly inputs: Uint32Array; readonly next: Uint32Array } {
  const inputs = new Uint32Array(batch * length);
  const next = new Uint32Array(batch * length);
  for (let row = 0; row < batch; row++) {
    // A prime stride visits all places before it repeats.
    const start = ((step * batch + row) * 7919) % (tokens.length - length - 1);
    inputs.set(tokens.subarray(start, start + length), row * length);
    next.set(tokens.subarray(start + 1, start + length + 1), row * length);
  }
  return { inputs, next };
}

/** A GPT of two layers that learns a nursery rhyme by heart, letter by letter. */
export function textTask({ runtime, config, inPrecision }: TaskParts): Task {
  const model = new GPT(runtime, {
    seed: config.seed,
    vocabSize: characters.length,
    blockSize: length,
    nLayer: 2,
    nHead: 4,
    nEmbd: 64,
    initializerRange: 0.02 * Math.sqrt(768 / 64),
  });
  const context = new Uint32Array(length).fill(characters.indexOf("\n"));
  let written = 0;
  const writeOne = async (): Promise<string> => {
    using logits = await runtime.step(() =>
      noGrad(() =>
        inPrecision(() => model.forward(runtime.tensor(context, [1, length])))
          .narrow(1, length - 1, 1)
          .to("float32"),
      ),
    );
    const [random] = philox4x32([written++, 0, 0, 0], [config.seed, 1]);
    const token = drawn(await logits.toArray(), random / 2 ** 32);
    context.copyWithin(0, 1);
    context[length - 1] = token;
    return characters[token] as string;
  };
  return {
    model,
    loss: (step) => {
      const { inputs, next } = windowsOf(step);
      return inPrecision(() => {
        const logits = model.forward(runtime.tensor(inputs, [batch, length]));
        return crossEntropy(
          logits.reshape([batch * length, characters.length]),
          runtime.tensor(next, [batch * length]),
        );
      });
    },
    view: {
      kind: "text",
      async write(count) {
        let text = "";
        for (let i = 0; i < count; i++) text += await writeOne();
        return text;
      },
    },
  };
}

/** A token by its probability. Logits that are no numbers give the first. */
export function drawn(logits: ArrayLike<number>, random: number): number {
  const values = Array.from(logits);
  const largest = Math.max(...values);
  const weights = values.map((logit) => Math.exp((logit - largest) / temperature));
  let rest = random * weights.reduce((a, b) => a + b, 0);
  for (const [token, weight] of weights.entries()) {
    rest -= weight;
    if (rest < 0) return token;
  }
  return 0;
}
