import { expect, it } from "vitest";
import { DataError } from "./error.js";

it("recognises an error from another copy of the package", () => {
  const foreign = Object.assign(new Error("x"), { [Symbol.for("@halfstep/DataError")]: true });
  expect(foreign instanceof DataError).toBe(true);
  expect(new Error("x") instanceof DataError).toBe(false);
  expect(new DataError("a.idx", "is truncated")).toMatchObject({
    name: "DataError",
    source: "a.idx",
    message: "a.idx: is truncated",
  });
});
