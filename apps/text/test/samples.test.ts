import { expect, it } from "vitest";
import { describeSamples } from "../src/samples.js";

it("samples have the correct answer, the prediction where it differs, and words for no label at all", () => {
  const samples = [
    { text: "fine", label: "good", prediction: "good" },
    { text: "poor", label: "bad", prediction: "good" },
    { text: "none", label: "", prediction: "rude loud" },
    { text: "loud", label: "loud", prediction: "" },
    { text: "calm", label: "", prediction: "" },
  ];
  expect(describeSamples(samples)).toEqual([
    "  fine → good",
    "  poor → bad, not good",
    "  none → (no label), not rude loud",
    "  loud → loud, not (no label)",
    "  calm → (no label)",
  ]);
});
