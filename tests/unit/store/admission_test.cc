#include "store/admission.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice::store {
namespace {

struct Row {
  Enforcement enforcement;
  bool fits;
};

bool admits(std::initializer_list<Row> rows) {
  Admission admission;
  for (const Row& row : rows) admission.add(row.enforcement, row.fits);
  return admission.admitted();
}

TEST(Admission, NothingToJudgePasses) { EXPECT_TRUE(admits({})); }

TEST(Admission, OneEnforcedRefusalDenies) {
  EXPECT_TRUE(admits({{Enforcement::enforce, true}, {Enforcement::enforce, true}}));
  EXPECT_FALSE(admits({{Enforcement::enforce, true}, {Enforcement::enforce, false}}));
  EXPECT_FALSE(admits({{Enforcement::enforce, false}, {Enforcement::enforce, true}}));
}

TEST(Admission, ShadowNeverDeniesAndNeverHidesADenial) {
  EXPECT_TRUE(admits({{Enforcement::shadow, false}}));
  EXPECT_TRUE(admits({{Enforcement::shadow, false}, {Enforcement::enforce, true}}));
  EXPECT_FALSE(admits({{Enforcement::shadow, false}, {Enforcement::enforce, false}}));
  EXPECT_FALSE(admits({{Enforcement::enforce, false}, {Enforcement::shadow, true}}));
}

TEST(Admission, QuotaDeniesOnlyWhenEveryQuotaChargeIsOver) {
  EXPECT_FALSE(admits({{Enforcement::quota, false}}));
  EXPECT_FALSE(admits({{Enforcement::quota, false}, {Enforcement::quota, false}}));
  EXPECT_TRUE(admits({{Enforcement::quota, false}, {Enforcement::quota, true}}));
  EXPECT_TRUE(admits({{Enforcement::quota, true}, {Enforcement::quota, false}}));
  EXPECT_FALSE(admits({{Enforcement::quota, false}, {Enforcement::enforce, true}}));
  EXPECT_FALSE(admits({{Enforcement::quota, true}, {Enforcement::enforce, false}}));
  EXPECT_FALSE(admits({{Enforcement::quota, false}, {Enforcement::shadow, true}}));
}

TEST(Admission, FromDecisions) {
  std::array<Charge, 2> charges{};
  charges[0].enforcement = Enforcement::shadow;
  charges[1].enforcement = Enforcement::quota;
  std::array<Decision, 2> decisions{};
  decisions[0].allowed = false;
  EXPECT_TRUE(admission_of(charges, decisions).admitted());
  decisions[1].allowed = false;
  EXPECT_FALSE(admission_of(charges, decisions).admitted());
  EXPECT_TRUE(admission_of(charges, decisions).quota_exhausted());
}

}  // namespace
}  // namespace sluice::store
