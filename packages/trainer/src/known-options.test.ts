import { expect, it } from "vitest";
import { requireKnownOptions } from "./known-options.js";

const kinds = {
  accumulate: "any",
  allowNonFiniteLoss: "any",
  checkpoints: "any",
  clip: "function",
};

const part = { stateDict: () => ({}), loadStateDict: () => {} };
const store = { newest: () => {}, save: () => {} };
const checkpoints = { store, parts: { model: part, optimizer: part } };

it.each([
  [{ acumulate: 2 }, "train() has no option acumulate: it has accumulate, allowNonFiniteLoss, "],
  [{ clip: 1 }, "clip is 1: it must be a function"],
  [{ checkpoints: { ...checkpoints, part: {} } }, "checkpoints has no option part: it has atEnd, "],
  [{ checkpoints: { ...checkpoints, store: "runs/x" } }, 'checkpoints.store is "runs/x": pass a'],
  [{ checkpoints: { store } }, "checkpoints.parts is undefined: pass { model, optimizer }"],
  [
    { checkpoints: { store, parts: { model: part } } },
    "checkpoints.parts.optimizer is undefined: it must have stateDict() and loadStateDict()",
  ],
  [{ checkpoints: { ...checkpoints, resume: true } }, 'checkpoints.resume is true: it must be "a'],
  [{ checkpoints: { ...checkpoints, resume: "yes" } }, 'checkpoints.resume is "yes": it must be'],
])("what training cannot use is refused in a line: %j", (options, message) => {
  expect(() => requireKnownOptions(options as never, kinds as never)).toThrow(message);
});

it("what it can use is not", () => {
  const resume = { path: "here", step: 1, parts: {} };
  for (const each of [{}, { checkpoints }, { checkpoints: { ...checkpoints, resume: "auto" } }])
    expect(() => requireKnownOptions(each as never, kinds as never)).not.toThrow();
  expect(() =>
    requireKnownOptions({ checkpoints: { ...checkpoints, resume } } as never, kinds as never),
  ).not.toThrow();
});
