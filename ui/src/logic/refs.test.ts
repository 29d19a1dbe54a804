import { expect, it } from "vitest";
import { refInWords } from "./refs";

it("names a relation by its ends", () =>
  expect(refInWords('applicant/["loan/42","contact/Ana Rivera"]')).toBe("applicant: loan/42 → contact/Ana Rivera"));
it("leaves other references as they are", () => {
  expect(refInWords("repo/org/name")).toBe("repo/org/name");
  expect(refInWords("note/[draft")).toBe("note/[draft");
});
