import { writeSafetensors } from "@halfstep/safetensors";
import { expect, test } from "vitest";
import { examine, examined, type TensorExam } from "./examine.js";
import { exampleFile } from "./example-file.js";
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
        "100 % become 0",
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
