import { expect, it } from "vitest";
import { Reports, toldToAll } from "./reports.js";

it("listeners that fail are told no more, and others are", async () => {
  const reports = new Reports();
  const told: string[] = [];
  const tell = toldToAll<[number]>(
    [
      undefined,
      (step) => {
        told.push(`a${step}`);
        if (step === 2) throw new Error("a");
      },
      async (step) => {
        told.push(`b${step}`);
        if (step === 1) throw new Error("b");
      },
      (step) => told.push(`c${step}`),
    ],
    reports,
  );
  tell(1);
  reports.check();
  expect(() => tell(2)).toThrow("a");
  await expect(reports.settled()).rejects.toThrow("b");
  expect(() => reports.check()).toThrow("b");
  tell(3);
  expect(told.join(" ")).toBe("a1 b1 c1 a2 b2 c2 c3");
});
