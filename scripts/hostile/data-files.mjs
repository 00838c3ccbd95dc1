// Hostile files of data: arrays, pictures, rows, and what runs write.
import { gzipSync } from "node:zlib";
import { centerView } from "../../apps/images/src/decode.ts";
import { readPicture } from "../../apps/segmentation/src/pictures.ts";
import { readOwnClasses, readOwnTags } from "../../apps/text/src/own-data.ts";
import { readIdxFile } from "../../packages/data/src/node.ts";
import { readMetrics } from "../../packages/trainer/src/metrics-log.ts";
import { readSummary } from "../../packages/trainer/src/node.ts";
import { contents, cuts, texts } from "./contents.mjs";

const idxHeader = (type, ...shape) => {
  const bytes = Buffer.alloc(4 + 4 * shape.length);
  bytes.set([0, 0, type, shape.length]);
  for (const [axis, size] of shape.entries()) bytes.writeUInt32BE(size, 4 + 4 * axis);
  return bytes;
};

function idxFiles() {
  const whole = Buffer.concat([idxHeader(8, 3, 2, 2), Buffer.alloc(12, 7)]);
  const files = [...contents, ...cuts(whole, whole.length)];
  for (const size of [2 ** 31, 2 ** 32 - 1])
    for (const rank of [1, 3, 255])
      files.push({ name: `${rank} × ${size}`, bytes: idxHeader(14, ...Array(rank).fill(size)) });
  files.push({ name: "a byte more", bytes: Buffer.concat([whole, Buffer.alloc(1)]) });
  return files;
}

function compressedIdxFiles() {
  const packed = gzipSync(Buffer.concat([idxHeader(8, 3, 2, 2), Buffer.alloc(12, 7)]));
  const bomb = gzipSync(Buffer.alloc(2 ** 26));
  const hidden = Buffer.concat([gzipSync(idxHeader(8, 100)), bomb, bomb, bomb, bomb]);
  return [
    ...cuts(packed, packed.length),
    ...idxFiles().map(({ name, bytes }) => ({ name, bytes: gzipSync(bytes) })),
    { name: "256 MiB behind a small header", bytes: hidden },
  ];
}

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mNgYGAAAAAEAAGjChXjAAAAAElFTkSuQmCC",
  "base64",
);

const sizes = [0, 30_000, 2 ** 20, 2 ** 31 - 1, 2 ** 32 - 1];

/** PNG's heads alone and before data that are of another size, BMPs and JPEGs that have nothing but a head. */
function pictureFiles() {
  const files = [...contents];
  for (const width of sizes)
    for (const height of sizes) {
      const lying = Buffer.from(png);
      lying.writeUInt32BE(width, 16);
      lying.writeUInt32BE(height, 20);
      files.push({ name: `a PNG of ${width}×${height}`, bytes: lying });
    }
  const jpegSizes = [0, 1, 30_000, 65_535];
  for (const width of jpegSizes)
    for (const height of jpegSizes) {
      const frame = [0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 0, 0, 0, 1, 1, 0x11, 0];
      const head = Buffer.from(frame);
      head.writeUInt16BE(height, 7);
      head.writeUInt16BE(width, 9);
      files.push({ name: `a JPEG's head of ${width}×${height}`, bytes: head });
    }
  return [...files, ...cuts(png.subarray(0, 41), 12)];
}

const rowsOf = (count, row) => Array.from({ length: count }, (_, i) => row(i)).join("\n");
const isNoText = ({ name }) =>
  ["no bytes", "a zero byte", "zeros", "bytes that are no text"].includes(name);
const pickled = [...contents.filter(isNoText), ...cuts(png, 4)];

const rows = (separator) =>
  texts({
    "a row with fewer fields": `a${separator}good\nb\n`,
    "a row with more fields": `a${separator}good\nb${separator}bad${separator}x\n`,
    "one column": "good\nbad\n",
    "a single row": `a${separator}good\n`,
    "a label for each text": rowsOf(200, (i) => `label ${i}${separator}text ${i}`),
    "one label": rowsOf(20, (i) => `a${separator}text ${i}`),
  });

const csvFiles = [
  ...pickled,
  ...rows(","),
  ...texts({ "an open quote": 'a,good\nb,"bad\n', "a quote in a field": 'a,go"od\nb,bad\n' }),
];

const jsonRows = [
  ...contents.filter(({ name }) => name !== "no text"),
  ...texts({
    "no label": '{"text":"good"}\n',
    "no text": '{"label":"a"}\n',
    "a list for a label": '{"label":[1],"text":"good"}\n',
    "a number for a text": '{"label":"a","text":1}\n',
    "a line that is cut": '{"label":"a","text":"good"}\n{"label":"b","te',
    "one label": rowsOf(20, (i) => `{"label":"a","text":"text ${i}"}`),
  }),
];

const columns = [
  ...pickled,
  ...texts({
    "a word without a tag": "good B\nbad\n",
    "empty lines": "\n\n\n",
    "documents without sentences": "-DOCSTART- -X- O O\n\n",
    "a tag for each word": rowsOf(100, (i) => `word${i} tag${i}`),
  }),
];

const step = { precision: "float16", step: 1, epoch: 1, loss: 2, applied: true, scale: 1, lr: 1 };
const metrics = [
  // No steps yet.
  ...contents.filter(({ name }) => name !== "no bytes"),
  ...Object.keys(step)
    .filter((field) => field !== "loss")
    .map((field) => ({ ...step, [field]: { a: 1 } }))
    .map((line, i) => ({ name: `field ${i}`, bytes: Buffer.from(JSON.stringify(line)) })),
  ...texts({
    "a line of two megabytes": `"${"x".repeat(2 ** 21)}"`,
    "a step that is cut": `${JSON.stringify(step)}\n{"precision":"float1`,
  }),
];

/** Each with the name of the file, its hostile contents, and the reader. */
export const dataFiles = {
  IDX: ["images", idxFiles(), readIdxFile],
  "IDX in gzip": ["images.gz", compressedIdxFiles(), readIdxFile],
  "images to classify": [
    "picture",
    pictureFiles(),
    (path) => centerView(path, { size: 8, resize: 8, channels: 3 }),
  ],
  "pictures to segment": ["picture", pictureFiles(), (path) => readPicture(path, { channels: 3 })],
  CSV: ["rows.csv", csvFiles, (data) => readOwnClasses({ data })],
  TSV: ["rows.tsv", [...pickled, ...rows("\t")], (data) => readOwnClasses({ data })],
  "JSON Lines": ["rows.jsonl", jsonRows, (data) => readOwnClasses({ data })],
  "columns of CoNLL": ["words.conll", columns, (data) => readOwnTags({ data })],
  "summary.json": ["summary.json", contents, readSummary],
  "metrics.jsonl": ["metrics.jsonl", metrics, (path) => [...readMetrics(path)]],
};
