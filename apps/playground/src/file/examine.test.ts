import { writeSafetensors } from "@halfstep/safetensors";
import { expect, test } from "vitest";
import { examine, examined, type TensorExam } from "./examine.js";
import { exampleFile } from "./example-file.js";
import { nameText } from "./name-text.js";
import { afterFinding, begun, failed, statusOf } from "./report.js";
import { verdictOf } from "./verdict.js";

async function examsOf(content: ArrayBuffer | string, name = "file"): Promise<TensorExam[]> {
  const exams: TensorExam[] = [];
  for await (const exam of examine(new Blob([content]), name)) exams.push(exam);
  return exams;
}

const verdicts = ({ losses = [] }: TensorExam): string[] =>
  losses.map((loss) => verdictOf(loss).text);

test("the example has a tensor for each kind of loss", async () => {
  const exams = await examsOf(exampleFile());
  expect(examined.map(({ name }) => name)).toEqual([
    "float16",
    "bfloat16",
    "float8e4m3fn",
    "float8e5m2",
  ]);
  expect(
    Object.fromEntries(exams.map((exam) => [exam.name, verdicts(exam)])),
  ).toMatchInlineSnapshot(`
    {
      "layers.0.weight": [
        "± < 0.1 %",
        "± 0.1 %",
        "± 5.5 %",
        "± 4.5 %",
      ],
      "layers.1.bias": [
        "± < 0.1 %",
        "± 0.1 %",
        "8.6 % become 0",
        "± 4.5 %",
      ],
      "layers.1.weight (one outlier)": [
        "± < 0.1 %",
        "± 0.1 %",
        "< 0.1 % overflow",
        "± 4.5 %",
      ],
      "norm.running_var": [
        "47 % overflow",
        "± 0.2 %",
        "99 % overflow",
        "50 % overflow",
      ],
      "optimizer.exp_avg_sq": [
        "> 99 % become 0",
        "± 0.1 %",
        "100 % become 0",
        "100 % become 0",
      ],
    }
  `);
});

test("halves are decoded, integers are left alone, and other files are refused", async () => {
  const file = writeSafetensors({
    half: { dtype: "F16", shape: [2], data: Uint16Array.of(0x3c00, 0x7bff) },
    whole: { dtype: "I32", shape: [1], data: Int32Array.of(3) },
  });
  const [half, whole] = (await examsOf(file.buffer)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  expect(half).toMatchObject({ dtype: "float16", largest: 65504 });
  expect(verdicts(half as TensorExam)[0]).toBe("exact");
  expect(whole).not.toHaveProperty("losses");
  await expect(examsOf(new ArrayBuffer(4), "short.safetensors")).rejects.toThrow(
    "short.safetensors: 4 bytes are too few",
  );
  await expect(examsOf("version https://git-lfs.github.com/spec/v1", "a")).rejects.toThrow(
    "Git LFS pointer",
  );
  await expect(examsOf("PK\u0003\u0004", "a.pt")).rejects.toThrow("npx halfstep-convert a.pt");
});

/** The start of a zip archive whose first file has a name. */
function archiveOf(first: string): ArrayBuffer {
  const header = new Uint8Array(30 + first.length);
  header.set(new TextEncoder().encode("PK\u0003\u0004"));
  header[26] = first.length;
  header.set(new TextEncoder().encode(first), 30);
  return header.buffer;
}

test("each other kind of file is named, with what to do", async () => {
  const refused: readonly (readonly [name: string, content: string | ArrayBuffer, text: string])[] =
    [
      ["model.zip", archiveOf("model/data.pkl"), "npx halfstep-convert model.zip writes"],
      ["arrays", archiveOf("weight.npy"), "is an archive of numpy arrays"],
      ["photos.zip", archiveOf("photos/1.jpg"), "is a zip archive: unpack it"],
      ["it's 1.pt", "PK\u0003\u0004", "npx halfstep-convert 'it'\\''s 1.pt' writes"],
      ["a.npz", "PK\u0003\u0004", "safetensors.numpy.save_file()"],
      ["model.safetensors.index.json", '{"weight_map":{}}', "choose one of those files"],
      ["photo.png", "\u0089PNG\r\n\u001a\n, and pixels", "is not a safetensors file"],
    ];
  for (const [name, content, text] of refused) {
    await expect(examsOf(content, name), name).rejects.toThrow(text);
  }
});

test("NaN, infinity and nothing at all are no exact numbers", async () => {
  const f32 = (...values: number[]) =>
    ({ dtype: "F32", shape: [values.length], data: Float32Array.from(values) }) as const;
  const file = writeSafetensors({
    empty: f32(),
    nan: f32(Number.NaN, Infinity),
    some: f32(1, Number.NaN),
  });
  const exams = await examsOf(file.buffer);
  expect(exams.map((exam) => [exam.name, verdicts(exam)[0]])).toEqual([
    ["empty", "empty"],
    ["nan", "no finite number"],
    ["some", "exact"],
  ]);
  const opened = afterFinding(begun, { type: "opened", name: "a.safetensors", count: 3 });
  expect(statusOf(opened)).toBe("a.safetensors: 0 of 3 tensors so far");
  const report = afterFinding(afterFinding(opened, { type: "tensors", exams }), { type: "done" });
  expect(statusOf(report)).toBe(
    "a.safetensors: 3 tensors. Nothing overflows in any of the four. 2 tensors have NaN or infinity already.",
  );
  expect(statusOf(failed(report, "It is gone."))).toBe("");
});

test("a file without numbers to compare says so, and files beside the first are named", () => {
  const done = (count: number, others = 0) =>
    statusOf({ ...begun, others, opened: { name: "a", count }, isDone: true });
  expect(done(0)).toBe("a: no tensors.");
  expect(done(2)).toBe("a: 2 tensors. None has floating-point numbers that can be compared.");
  expect(done(0, 1)).toBe(
    "a: no tensors. One file is shown at a time: the other files were left alone.",
  );
});

test("names show what cannot be seen, and are short", () => {
  expect(nameText("layers.0.weight")).toBe("layers.0.weight");
  expect(nameText("\u202eevil\n")).toBe("\\u202eevil\\u000a");
  expect(nameText("")).toBe("(no name)");
  expect(nameText(`${"x".repeat(3000)}.bias`)).toMatch(/^x{80}…x+\.bias$/);
});
