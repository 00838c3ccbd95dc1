import "./tensor/with-methods.js";

export * from "./functions.js";
