import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleApp } from "../start/bundle.mjs";
import { runProgram } from "./run-program.mjs";

const fromRoot = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const app = (name) => ({
  source: `apps/${name}/src/main.ts`,
  outfile: `apps/${name}/dist/main.js`,
});
const unet = fromRoot("apps/segmentation/test/golden/unet.pth");
const tiny = "--device cpu --layers 1 --heads 1 --max-steps 2".split(" ");

/**
 * The commands that write files other than those of a training run: their programs, what is trained for them, and their arguments for an
 * output. `given` are files of {@link prepare}. A command whose output `isNew` refuses a folder with an older one.
 */
const commands = {
  convert: {
    source: "packages/torch-files/src/cli/main.ts",
    outfile: "packages/torch-files/node_modules/.cache/convert.js",
    output: "converted.safetensors",
    args: (output) => [unet, output, "--key", "averaged.weights", "--dtype", "float32"],
  },
  mask: {
    ...app("segmentation"),
    output: "mask.png",
    args: (output, { picture }) => [
      ...["predict", picture, "-o", output, "--pretrained", unet, "--key", "averaged.weights"],
      ...["--scale", "1", "--device", "cpu"],
    ],
  },
  enlarged: {
    ...app("super-resolution"),
    output: "enlarged.png",
    args: (output, { picture }) => ["predict", picture, output, "--device", "cpu"],
  },
  images: {
    ...app("images"),
    output: "images",
    isNew: true,
    args: (output) => ["export-folder", output, "--train", "10", "--test", "10"],
  },
  "weights of a ResNet": {
    ...app("images"),
    train: ({ pictures }) => [
      ...["train", pictures, "--arch", "resnet20", "--device", "cpu", "--max-steps", "1"],
      ...["--batch-size", "4", "--image-size", "8"],
    ],
    output: "resnet.safetensors",
    args: (output, { model }) => ["export", output, "--model", model, "--device", "cpu"],
  },
  "ONNX of a ResNet": {
    ...app("images"),
    train: (given) => commands["weights of a ResNet"].train(given),
    output: "resnet.onnx",
    args: (output, { model }) => ["export", output, "--model", model, "--device", "cpu"],
  },
  "folder of a GPT": {
    ...app("language-model"),
    train: ({ text }) => [
      ...["train", "--text", text, ...tiny, "--width", "8", "--context", "8", "--batch-size", "2"],
      ...["--precision", "float32", "--warm-up", "0", "--eval-characters", "100"],
    ],
    output: "gpt",
    args: (output, { model }) => ["export", output, "--model", model],
  },
  "ONNX of a BERT": {
    ...app("text"),
    train: ({ rows }) => [
      ...["train", "--task", "sentences", "--data", rows, ...tiny, "--hidden-size", "8"],
      ...["--least-count", "1", "--no-bag"],
    ],
    output: "bert.onnx",
    args: (output, { model }) => ["export", output, "--model", model],
  },
};

/** A picture of 16×16 pixels. */
const picture = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAClklEQVR42mNgYGCQl5e3s7OLjY2tqamZPXv2rl27bt68+ePHD3FxcTMzs9DQ0JKSksmTJ2/atOnixYsM7Ozsampqrq6uKSkpzc3NixYtOnjw4IMHD/7//y8nJ2draxsTE1NdXT1r1qydO3feuHGDgY+PT1dX18fHJzs7u6ura+XKlSdOnHj+/DkbG5uqqqqLi0tycnJTU9PChQsPHDhw//59BlFRURMTk+Dg4KKiookTJ27YsOH8+fPv3r3j5eXV0dHx9vbOysrq7OxcsWLF8ePHnz17xiAjI2NtbR0VFVVZWTljxozt27dfu3bt69evIiIixsbGQUFBhYWFEyZMWL9+/blz596+fcugrKzs5OSUmJjY0NAwf/78ffv23b1798+fP9LS0lZWVpGRkRUVFdOnT9+2bdvVq1e/fPnCoKWl5enpmZGR0d7evmzZsqNHjz558oSZmVlJScnR0TEhIaG+vn7evHl79+69c+fO79+/GQwNDQMCAvLz8/v6+tauXXvmzJnXr19zcXFpamp6eHikp6e3tbUtXbr0yJEjjx8/ZmJiYrCwsAgPDy8rK5s6deqWLVsuX7786dMnQUFBAwMDf3//vLy83t7eNWvWnD59+tWrV5ycnAz29vZxcXG1tbVz5szZvXv3rVu3fv78KSEhYW5uHhYWVlpaOmXKlM2bN1+6dOnjx48CAgIMbm5uqampLS0tixcvPnTo0MOHD/HHPYOvr29OTk53d/eqVatOnjz54sUL/HHPEBISUlxcPGnSpI0bN164cOH9+/f4454hOjq6qqpq5syZO3bsuH79+rdv3/DHPUNSUlJjY+OCBQv2799/7969v3//4o97hszMzI6OjuXLlx87duzp06csLCz44x4AgTmDEE2z0pgAAAAASUVORK5CYII=",
  "base64",
);

/**
 * Bundles the programs, and trains what they export.
 * @param {string} directory an empty folder
 * @returns the commands, each with its name, its program, the place and the arguments of its output in a folder, and whether it is new
 */
export async function writingCommands(directory) {
  const at = (name) => join(directory, name);
  const given = { picture: at("picture.png"), text: at("text.txt"), rows: at("rows.tsv") };
  writeFileSync(given.picture, picture);
  writeFileSync(given.text, "the cat sat on the mat and the dog sat on the cat\n".repeat(40));
  writeFileSync(given.rows, "good\ta good one\nbad\ta bad one\n".repeat(10));
  for (const part of ["train", "val"])
    for (const name of ["a", "b"]) {
      mkdirSync(at(join("pictures", part, name)), { recursive: true });
      for (let i = 0; i < 4; i++)
        writeFileSync(at(join("pictures", part, name, `${i}.png`)), picture);
    }
  given.pictures = at("pictures");
  const prepared = [];
  for (const [name, { source, outfile, output, isNew, train, args }] of Object.entries(commands)) {
    const program = fromRoot(outfile);
    await bundleApp(fromRoot(source), program);
    const model = at(`model of ${name}`);
    if (train) await requireDone(name, program, [...train(given), "--out", model]);
    prepared.push({
      ...{ name, program, output, isNew },
      argsFor: (path) => args(path, { ...given, model }),
    });
  }
  return prepared;
}

async function requireDone(name, program, args) {
  const { code, stderr } = await runProgram(program, args);
  if (code !== 0) throw new Error(`${name} failed: ${stderr}`);
}
