import { expect, test } from "vitest";
import type { Conv2dAttributes } from "./attributes.js";
import { decidedOnce } from "./decisions.js";

const attributes: Conv2dAttributes = {
  ...{ batch: 2, height: 8, width: 6, inChannels: 4, outChannels: 8 },
  ...{ kernelHeight: 3, kernelWidth: 5 },
  ...{ stride: [1, 2], padding: [1, 0], dilation: [1, 3], groups: 1 },
};

test("equal attributes are decided once, with and without the default of groups", () => {
  let decided = 0;
  const decide = decidedOnce(() => ++decided);
  const { groups: _, ...ungrouped } = attributes;
  expect(decide(attributes, undefined)).toBe(decide({ ...attributes, stride: [1, 2] }, undefined));
  expect(decide(attributes, undefined)).toBe(decide(ungrouped, undefined));
  expect(decided).toBe(1);
});

test("every attribute and the class of hardware is part of the decision", () => {
  let decided = 0;
  const decide = decidedOnce(() => ++decided);
  const others = Object.entries(attributes).flatMap(([name, value]) =>
    Array.isArray(value)
      ? [0, 1].map((d) => ({ [name]: value.map((size, i) => (i === d ? size + 4 : size)) }))
      : [{ [name]: value + 4 }],
  );
  decide(attributes, undefined);
  for (const other of others) decide({ ...attributes, ...other }, undefined);
  decide(attributes, "software");
  expect(decided).toBe(others.length + 2);
});

test("a list that the caller changes afterwards does not change a decision", () => {
  const decide = decidedOnce(({ stride }) => stride.join());
  const stride: [number, number] = [1, 1];
  expect(decide({ ...attributes, stride }, undefined)).toBe("1,1");
  stride[0] = 2;
  expect(decide({ ...attributes, stride }, undefined)).toBe("2,1");
  expect(decide({ ...attributes, stride: [1, 1] }, undefined)).toBe("1,1");
});

test("attributes that are refused are refused again", () => {
  const decide = decidedOnce((): number => {
    throw new RangeError("refused");
  });
  for (let call = 0; call < 2; call++)
    expect(() => decide(attributes, undefined)).toThrow("refused");
});
