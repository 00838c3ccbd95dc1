// A model file of one Add, written as protocol buffers: `c = a + b`.

const varint = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)]);
const whole = (field, value) => [...varint(field << 3), ...varint(value)];
const bytes = (field, content) => [
  ...varint((field << 3) | 2),
  ...varint(content.length),
  ...content,
];
const text = (field, value) => bytes(field, [...new TextEncoder().encode(value)]);

const float32 = 1;
const value = (name, dims) => {
  const shape = dims.flatMap((size) => bytes(1, whole(1, size)));
  return [...text(1, name), ...bytes(2, bytes(1, [...whole(1, float32), ...bytes(2, shape)]))];
};

/** The bytes of the model for float32 of these sizes. */
export const addModel = (dims) => {
  const node = [...text(1, "a"), ...text(1, "b"), ...text(2, "c"), ...text(4, "Add")];
  const graph = [
    ...bytes(1, node),
    ...text(2, "sum"),
    ...bytes(11, value("a", dims)),
    ...bytes(11, value("b", dims)),
    ...bytes(12, value("c", dims)),
  ];
  const opset = [...text(1, ""), ...whole(2, 17)];
  return new Uint8Array([...whole(1, 8), ...bytes(7, graph), ...bytes(8, opset)]);
};
