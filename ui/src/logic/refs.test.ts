import { expect, it } from "vitest";
import { entityName, refInWords, tellingFields } from "./refs";

it("names a relation by its ends", () =>
  expect(refInWords('applicant/["loan/42","contact/Ana Rivera"]')).toBe("applicant: loan/42 → contact/Ana Rivera"));
it("leaves other references as they are", () => {
  expect(refInWords("repo/org/name")).toBe("repo/org/name");
  expect(refInWords("note/[draft")).toBe("note/[draft");
});

it("an entity is called by words where its key is none", () => {
  expect(entityName('applicant/["loan/42","contact/Ana"]')).toBe("loan/42 → contact/Ana");
  expect(entityName("note/5sae4imr", { text: "calls before noon" })).toBe("“calls before noon”");
  expect(entityName("note/5sae4imr")).toBe("5sae4imr");
  expect(entityName("loan/[42")).toBe("[42");
});

it("values that say the name again are left out", () => {
  expect(tellingFields("contact/Ana", { name: "Ana", city: "Reus" })).toEqual([["city", "Reus"]]);
  expect(tellingFields('employs/["a/1","b/2"]', { from: "a/1", to: "b/2", since: 2020 })).toEqual([["since", 2020]]);
  expect(tellingFields("note/x", { text: "hello", about: "a/1" })).toEqual([["about", "a/1"]]);
});
