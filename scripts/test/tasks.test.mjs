import { describe, expect, it } from "vitest";
import { failedTasks } from "./tasks.mjs";

const output = `
@halfstep/data:test:    ✓ reads a file
@halfstep/nn:test: ⎯⎯ Unhandled Errors ⎯⎯
\u001b[31m@halfstep/nn:test: \u001b[0mError: later
@halfstep/data:test:  Tests  3 passed (3)
@halfstep/nn:test:    ✓ multiplies
@halfstep/nn#test:  ERROR  command (/x) npm run test exited (1)
text:test: Segmentation fault

 Tasks:    24 successful, 26 total
Failed:    @halfstep/nn#test, text#test
`;

describe("failedTasks", () => {
  it("names the tasks of turbo's summary, with what they printed last", () => {
    expect(failedTasks(output)).toEqual([
      { name: "@halfstep/nn#test", lines: ["⎯⎯ Unhandled Errors ⎯⎯", "Error: later"] },
      { name: "text#test", lines: ["Segmentation fault"] },
    ]);
  });

  it("finds none where all passed", () => {
    expect(failedTasks(" Tasks:    26 successful, 26 total\n")).toEqual([]);
  });
});
