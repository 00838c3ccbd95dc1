import type { Scene, SceneSet } from "./scene.js";
import { Confusion, type Scores } from "./scores.js";

/** The scores of a simple rule on the held-out scenes. */
export interface Baseline {
  readonly name: string;
  readonly scores: Scores;
}

/** Rules that a network must beat: by colour for two classes, by shape for digits; none for other sets. */
export function baselinesOf(set: SceneSet): readonly Baseline[] {
  if (set.channels === 3 && set.classes.length === 2) return colourThresholds(set);
  if (set.channels === 1) return [mostFrequentInk(set), nearestMean(set)];
  return [];
}

type Measure = (red: number, green: number, blue: number) => number;

const measures: readonly {
  readonly name: string;
  readonly of: Measure;
  readonly fixed?: number;
}[] = [
  { name: "blue over red and green, unfitted", of: blueExcess, fixed: 5 },
  { name: "blue over red", of: (red, _, blue) => blue - red },
  { name: "blue over red and green", of: blueExcess },
  { name: "blue in 100 parts of light", of: (r, g, b) => Math.round((100 * b) / (r + g + b + 1)) },
];

function blueExcess(red: number, green: number, blue: number): number {
  return blue - Math.max(red, green);
}

/** Assigns the second class where a measure of colour is at most a threshold, the best one on the training scenes. */
function colourThresholds({ train, heldOut, classes }: SceneSet): readonly Baseline[] {
  return measures.map(({ name, of, fixed }) => {
    const threshold = fixed ?? bestThreshold(train, of);
    const scores = scoresOf(heldOut, classes, (scene) =>
      scene.labels.map((_, i) => (measureAt(scene, i, of) <= threshold ? 1 : 0)),
    );
    return { name: `${name}, from ${threshold + 1} on`, scores };
  });
}

const measureAt = ({ pixels }: Scene, i: number, of: Measure): number =>
  of(pixels[3 * i] as number, pixels[3 * i + 1] as number, pixels[3 * i + 2] as number);

function bestThreshold(scenes: readonly Scene[], of: Measure): number {
  // Pixels by measure, −255 to 255, and class.
  const counts = [new Float64Array(511), new Float64Array(511)] as const;
  for (const scene of scenes)
    for (let i = 0; i < scene.labels.length; i++) {
      const at = measureAt(scene, i, of) + 255;
      const count = counts[scene.labels[i] as number];
      if (!count) continue;
      count[at] = (count[at] as number) + 1;
    }
  const wanted = counts[1].reduce((sum, count) => sum + count, 0);
  let best = { iou: -1, threshold: 0 };
  let hits = 0;
  let found = 0;
  for (let at = 0; at < 511; at++) {
    hits += counts[1][at] as number;
    found += (counts[0][at] as number) + (counts[1][at] as number);
    const iou = hits / (wanted + found - hits);
    if (iou > best.iou) best = { iou, threshold: at - 255 };
  }
  return best.threshold;
}

/** The grey from which a pixel is ink. */
const inkFrom = 96;

/** Assigns all ink to the most frequent class of ink. */
function mostFrequentInk({ train, heldOut, classes }: SceneSet): Baseline {
  const counts = classes.map(() => 0);
  for (const { labels } of train)
    for (const label of labels) counts[label] = (counts[label] as number) + 1;
  const most = counts.indexOf(Math.max(...counts.slice(1)), 1);
  return {
    name: `all ink is ${classes[most]}`,
    scores: scoresOf(heldOut, classes, ({ pixels }) =>
      pixels.map((grey) => (grey >= inkFrom ? most : 0)),
    ),
  };
}

/** Assigns each connected piece of ink to the class with the nearest mean of centred pieces. */
function nearestMean({ train, heldOut, classes }: SceneSet): Baseline {
  const sums = classes.map(() => new Float64Array(patch * patch));
  const counts = classes.map(() => 0);
  for (const scene of train)
    for (const piece of piecesOf(scene, ({ labels }, i) => labels[i] as number)) {
      const label = scene.labels[piece[0] as number] as number;
      const sum = sums[label] as Float64Array;
      for (const [i, value] of centred(scene, piece).entries()) sum[i] = (sum[i] as number) + value;
      counts[label] = (counts[label] as number) + 1;
    }
  const means = sums.map((sum, label) => sum.map((value) => value / (counts[label] as number)));
  const predict = (scene: Scene): Uint8Array => {
    const labels = new Uint8Array(scene.labels.length);
    for (const piece of piecesOf(scene, ({ pixels }, i) =>
      (pixels[i] as number) >= inkFrom ? 1 : 0,
    )) {
      const values = centred(scene, piece);
      const distances = means.map((mean, label) =>
        label === 0 || counts[label] === 0 ? Number.POSITIVE_INFINITY : distance(mean, values),
      );
      const nearest = distances.indexOf(Math.min(...distances));
      for (const i of piece) labels[i] = nearest;
    }
    return labels;
  };
  return { name: "nearest mean of pieces", scores: scoresOf(heldOut, classes, predict) };
}

/** Height and width of a centred piece. */
const patch = 28;

/** Connected pixels, diagonals too, of one kind that is not 0. */
function piecesOf(scene: Scene, kindOf: (scene: Scene, i: number) => number): readonly number[][] {
  const { height, width } = scene;
  const kinds = scene.labels.map((_, i) => kindOf(scene, i));
  const pieces: number[][] = [];
  for (let first = 0; first < kinds.length; first++) {
    const kind = kinds[first] as number;
    if (kind === 0) continue;
    const piece = [first];
    kinds[first] = 0;
    for (let next = 0; next < piece.length; next++) {
      const [y, x] = [Math.floor((piece[next] as number) / width), (piece[next] as number) % width];
      for (let row = Math.max(0, y - 1); row <= Math.min(height - 1, y + 1); row++)
        for (let column = Math.max(0, x - 1); column <= Math.min(width - 1, x + 1); column++) {
          const i = row * width + column;
          if (kinds[i] !== kind) continue;
          kinds[i] = 0;
          piece.push(i);
        }
    }
    pieces.push(piece);
  }
  return pieces;
}

/** The ink of a piece around its centre of mass, from 0 to 1. */
function centred({ pixels, width }: Scene, piece: readonly number[]): Float64Array {
  let [y, x, mass] = [0, 0, 0];
  for (const i of piece) {
    const weight = pixels[i] as number;
    y += weight * Math.floor(i / width);
    x += weight * (i % width);
    mass += weight;
  }
  const values = new Float64Array(patch * patch);
  for (const i of piece) {
    const row = Math.floor(i / width) - Math.round(y / mass) + patch / 2;
    const column = (i % width) - Math.round(x / mass) + patch / 2;
    if (row >= 0 && row < patch && column >= 0 && column < patch)
      values[row * patch + column] = (pixels[i] as number) / 255;
  }
  return values;
}

const distance = (a: Float64Array, b: Float64Array): number =>
  a.reduce((sum, value, i) => sum + (value - (b[i] as number)) ** 2, 0);

function scoresOf(
  scenes: readonly Scene[],
  classes: readonly string[],
  predict: (scene: Scene) => ArrayLike<number>,
): Scores {
  const confusion = new Confusion(classes);
  for (const scene of scenes) confusion.add(scene.labels, predict(scene));
  return confusion.scores();
}
