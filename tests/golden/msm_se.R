# Standard errors for tests/test_information.py, by R's msm, on the panels of msm_em.R. Run in this folder: Rscript msm_se.R
library(msm)

control <- list(reltol = 1e-15, maxit = 20000, fnscale = 1000)
number <- function(x) ifelse(is.na(x), "0", format(x, digits = 10, trim = TRUE, scientific = FALSE))
table <- function(m) {
  paste0("[", paste(apply(m, 1, function(r) paste0("[", paste(number(r), collapse = ", "), "]")), collapse = ", "), "]")
}

# Standard errors of misclassification chances from the covariance of their log odds: those that ematrix.msm prints are
# its own approximation for more than two states.
misread_se <- function(model) {
  chances <- ematrix.msm(model)$estimates
  at <- which(names(model$estimates) == "p")
  out <- matrix(0, 3, 3)
  for (s in 1:3) {
    own <- at[(2 * s - 1):(2 * s)]
    p <- chances[s, -s]
    J <- diag(p) - outer(p, p)
    out[s, -s] <- sqrt(diag(J %*% model$covmat[own, own] %*% t(J)))
  }
  out
}

fit <- function(name, allowed, ...) {
  data <- read.csv(paste0("em_", name, ".csv"))
  model <- msm(state ~ time, subject = id, data = data, qmatrix = allowed * 0.5, method = "BFGS", control = control, ...)
  sojourn <- sojourn.msm(model)
  ratio <- qratio.msm(model, c(1, 2), c(2, 3))
  text <- paste0("    \"rates\": ", table(qmatrix.msm(model)$SE), ",\n",
                 "    \"sojourn\": ", table(as.matrix(sojourn[, c("estimates", "SE", "L", "U")])), ",\n",
                 "    \"ratio\": ", table(rbind(ratio)))
  if (model$emodel$misc) text <- paste0(text, ",\n    \"emission\": ", table(misread_se(model)))
  paste0("  \"", name, "\": {\n", text, "\n  }")
}

full <- 1 - diag(3)
progressive <- rbind(c(0, 1, 1), c(0, 0, 1), c(0, 0, 0))
chain <- rbind(c(0, 1, 0), c(1, 0, 1), c(0, 1, 0))
misread <- rbind(c(0, 0.1, 0.1), c(0.1, 0, 0.1), c(0.1, 0.1, 0))
parts <- c(
  fit("direct", full),
  fit("illness_death", progressive),
  fit("misclassified", chain, ematrix = misread, est.initprobs = TRUE, initprobs = rep(1, 3) / 3)
)
version <- paste0("  \"made_by\": \"msm_se.R, msm ", packageVersion("msm"), "\"")
writeLines(paste0("{\n", paste(c(version, parts), collapse = ",\n"), "\n}"), "se_msm.json")
