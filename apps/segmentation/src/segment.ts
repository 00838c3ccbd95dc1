import type { Device } from "@halfstep/device";
import { type Runtime, softmax, type Tensor } from "@halfstep/tensor";
import { Predictor, type PredictorUsage } from "@halfstep/trainer";
import type { Picture } from "./pictures.js";
import type { OpenedSegmenter } from "./saved-model.js";
import { encoded } from "./tiles.js";

/** Height and width of a window without its margin. */
const interior = 192;

/** Margin of a window in pixels, because a network is worst at the edges of its input. */
const margin = 32;

export interface SegmentOptions {
  readonly runtime: Runtime;
  readonly device?: Device | undefined;
  readonly segmenter: Pick<
    OpenedSegmenter,
    "model" | "precision" | "channels" | "classes" | "encoding"
  >;
  /** Store the network in 16 bits. Default false. */
  readonly half?: boolean | undefined;
}

/** Probabilities of the classes at each pixel of a picture. */
export interface Segmented {
  readonly height: number;
  readonly width: number;
  /** Number of classes. */
  readonly classes: number;
  /** [height, width, classes] */
  readonly probabilities: Float32Array;
}

/** Segments pictures of any size, window by window. */
export class PictureSegmenter {
  readonly #options: SegmentOptions;
  readonly #predictor: Predictor<Float32Array>;
  /** Height and width of the current windows. */
  #window: readonly [number, number] = [0, 0];

  constructor(options: SegmentOptions) {
    this.#options = options;
    const { runtime, device, segmenter, half } = options;
    const { model, channels, precision } = segmenter;
    this.#predictor = new Predictor<Float32Array>({
      ...{ runtime, device, model, precision, batchSize: 4 },
      forward: (windows): Tensor => {
        const all = new Float32Array(windows.length * (windows[0] as Float32Array).length);
        for (const [i, window] of windows.entries()) all.set(window, i * window.length);
        const images = runtime.tensor(all, [windows.length, ...this.#window, channels]);
        return softmax(model.forward(images));
      },
    });
    if (half) {
      if (precision === "bfloat16") this.#predictor.bfloat16();
      else this.#predictor.half();
    }
  }

  /** @param picture with as many channels as the network takes */
  async segment(picture: Picture): Promise<Segmented> {
    const { height, width } = picture;
    const classes = this.#options.segmenter.classes.length;
    const [rows, columns] = [insideOf(height), insideOf(width)];
    this.#window = [rows + 2 * margin, columns + 2 * margin];
    const probabilities = new Float32Array(height * width * classes);
    const places = [...placesOf(picture, rows, columns)];
    const numbers = encoded[this.#options.segmenter.encoding ?? "logarithmic"];
    const windows = function* (this: PictureSegmenter): Generator<Float32Array> {
      for (const place of places) yield windowOf(picture, place, this.#window, numbers);
    };
    let next = 0;
    for await (const row of this.#predictor.stream(windows.call(this))) {
      const { y, x } = places[next++] as Place;
      const length = Math.min(columns, width - x) * classes;
      for (let line = 0; line < Math.min(rows, height - y); line++) {
        const from = ((line + margin) * this.#window[1] + margin) * classes;
        probabilities.set(
          (row as Float32Array).subarray(from, from + length),
          ((y + line) * width + x) * classes,
        );
      }
    }
    return { height, width, classes, probabilities };
  }

  /** The cost so far. */
  usage(): Promise<PredictorUsage> {
    return this.#predictor.usage();
  }
}

interface Place {
  readonly y: number;
  readonly x: number;
}

/** Four times pooling halves: windows are multiples of 16. */
const insideOf = (length: number): number => Math.min(interior, Math.ceil(length / 16) * 16);

function* placesOf({ height, width }: Picture, rows: number, columns: number): Generator<Place> {
  for (let y = 0; y < height; y += rows) for (let x = 0; x < width; x += columns) yield { y, x };
}

/** A window with its margin; beyond the edges of the picture, the pixels at the edges. */
function windowOf(
  picture: Picture,
  { y, x }: Place,
  size: readonly [number, number],
  numbers: Float32Array,
): Float32Array {
  const { height, width, channels, pixels } = picture;
  const values = new Float32Array(size[0] * size[1] * channels);
  let to = 0;
  for (let row = y - margin; row < y - margin + size[0]; row++)
    for (let column = x - margin; column < x - margin + size[1]; column++) {
      const from = (clamp(row, height) * width + clamp(column, width)) * channels;
      for (let c = 0; c < channels; c++)
        values[to++] = numbers[pixels[from + c] as number] as number;
    }
  return values;
}

const clamp = (index: number, length: number): number => Math.min(Math.max(index, 0), length - 1);

/**
 * The class of each pixel of a picture of another size, from probabilities that are interpolated.
 * @param threshold of two classes, the least probability of the second
 */
export function labelsOf(
  { probabilities, height, width, classes }: Segmented,
  size: Pick<Picture, "height" | "width">,
  threshold = 0.5,
): Uint8Array {
  const labels = new Uint8Array(size.height * size.width);
  const across = neighbours(size.width, width);
  for (const [y, [top, bottom, down]] of neighbours(size.height, height).entries())
    for (const [x, [left, right, along]] of across.entries()) {
      const at = (row: number, column: number, c: number): number =>
        probabilities[(row * width + column) * classes + c] as number;
      const mixed = (c: number): number =>
        (1 - down) * ((1 - along) * at(top, left, c) + along * at(top, right, c)) +
        down * ((1 - along) * at(bottom, left, c) + along * at(bottom, right, c));
      let best = 0;
      if (classes === 2) best = mixed(1) > threshold ? 1 : 0;
      else {
        let most = mixed(0);
        for (let c = 1; c < classes; c++) {
          const value = mixed(c);
          if (value > most) [best, most] = [c, value];
        }
      }
      labels[y * size.width + x] = best;
    }
  return labels;
}

/** For each place of a line, the two neighbouring places of another line, and the weight of the second. */
const neighbours = (
  length: number,
  from: number,
): readonly (readonly [before: number, after: number, share: number])[] =>
  Array.from({ length }, (_, i) => {
    const place = Math.max(0, ((i + 0.5) * from) / length - 0.5);
    const before = Math.min(Math.floor(place), from - 1);
    return [before, Math.min(before + 1, from - 1), place - before] as const;
  });
