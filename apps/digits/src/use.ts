import { mnistNormalization, normalizedBytes } from "@halfstep/data";
import { softmax } from "@halfstep/tensor";
import { macroF1 as macroF1Of, Predictor } from "@halfstep/trainer";
import { openRuntime, print, say } from "@halfstep/trainer/cli";
import { confusionLines, confusionOf } from "./confusion.js";
import { imageSize, readDigits, sampleOf } from "./data.js";
import { testDigits } from "./digits.js";
import { openNetwork } from "./network.js";
import type { EvaluateCommand, PredictCommand } from "./options.js";
import { readDigit } from "./read-digit.js";

/** `evaluate`: tests a network on the test images. */
export async function evaluate(options: EvaluateCommand): Promise<number> {
  const data = await readDigits(options);
  const { runtime, close } = await openRuntime({ ...options, onNote: say });
  const { model, path, precision } = await openNetwork(runtime, options);
  const test = sampleOf(data.test, options.limit, 0);
  const digits: number[] = [];
  const onTested = (tested: Uint32Array): unknown => digits.push(...tested);
  const { accuracy, loss, samples } = await testDigits({
    ...{ runtime, model, precision, test, onTested },
  });
  close();
  const confusion = confusionOf(test, digits);
  const macroF1 = macroF1Of(confusion.classScores());
  if (options.json) {
    const figures = { accuracy, macroF1, loss, samples, confusion: confusion.rows() };
    print(JSON.stringify({ model: path, precision, ...figures }, undefined, 2));
  } else {
    print(
      `accuracy ${(100 * accuracy).toFixed(2)} %  macro F1 ${(100 * macroF1).toFixed(2)} %  loss ${loss.toFixed(4)}  ${samples} images  ${precision}`,
    );
    print(confusionLines(confusion));
  }
  return 0;
}

/** What a network takes a picture for. */
interface Prediction {
  readonly file: string;
  readonly digit: number;
  /** From 0 to 1. */
  readonly probability: number;
}

/** `predict PICTURES…`: the digit of each picture. */
export async function predict(options: PredictCommand): Promise<number> {
  const { runtime, device, close } = await openRuntime({ ...options, onNote: say });
  const { model, path, precision } = await openNetwork(runtime, options);
  using predictor = new Predictor<Float32Array>({
    ...{ runtime, device, model, precision, batchSize: 32 },
    forward: (images) => {
      const pixels = Float32Array.from(images.flatMap((image) => [...image]));
      return softmax(
        model.forward(runtime.tensor(pixels, [images.length, imageSize, imageSize, 1])),
      );
    },
  });
  if (options.half) predictor.half();
  const numbers = normalizedBytes(mnistNormalization, 1);
  const images: Float32Array[] = [];
  for (const file of options.files) {
    const pixels = await readDigit(file);
    images.push(Float32Array.from(pixels, (byte) => numbers[byte] as number));
  }
  const rows = await predictor.predict(images);
  const usage = await predictor.usage();
  close();
  const predictions = rows.map((row, i): Prediction => {
    const probability = Math.max(...row);
    return { file: options.files[i] as string, digit: row.indexOf(probability), probability };
  });
  print(
    options.json
      ? JSON.stringify({ model: path, predictions, usage }, undefined, 2)
      : predictions
          .map(
            ({ file, digit, probability }) =>
              `${file}: ${digit}  ${(100 * probability).toFixed(1)} %`,
          )
          .join("\n"),
  );
  return 0;
}
