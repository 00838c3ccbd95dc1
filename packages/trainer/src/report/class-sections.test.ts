import { expect, it } from "vitest";
import { ConfusionMatrix } from "../classification/confusion-matrix.js";
import { LabelSetCounts } from "../classification/label-sets.js";
import { classSections } from "./class-sections.js";

it("shows the figures of each class, and what is taken for what", () => {
  const confusion = new ConfusionMatrix(["<b>ad", "good", "never"]);
  confusion.add([0, 0, 1, 1], [0, 1, 1, 1]);
  const [classes, confusions] = classSections(confusion);
  expect([classes?.title, confusions?.title]).toEqual(["Classes", "Confusions"]);
  expect(classes?.html).toContain("&#60;b&#62;ad</td><td>2</td><td>1</td><td>100.00 %</td>");
  expect(classes?.html).toContain("never</td><td>0</td><td>0</td><td>–</td><td>–</td><td>–</td>");
  // Half of the bad ones were taken for good.
  expect(confusions?.html).toContain('<td style="background: rgba(214, 39, 40, 0.30)">1</td>');
  expect(confusions?.html).toContain('<td style="background: rgba(31, 119, 180, 0.60)">2</td>');
});

it("lists the most frequent confusions of many classes", () => {
  const confusion = new ConfusionMatrix(Array.from({ length: 40 }, (_, i) => `class ${i}`));
  confusion.add([3, 3, 7, 5], [4, 4, 8, 5]);
  const { html = "" } = classSections(confusion)[1] ?? {};
  expect(html.match(/class \d+<\/td><td class="text">class \d+<\/td><td>\d+/g)).toEqual([
    'class 3</td><td class="text">class 4</td><td>2',
    'class 7</td><td class="text">class 8</td><td>1',
  ]);
});

it("shows labels alone where an example may have several", () => {
  const counts = new LabelSetCounts(["a", "b"]);
  counts.add([1, 1], [1, 0]);
  expect(classSections(counts).map(({ title }) => title)).toEqual(["Classes"]);
});
